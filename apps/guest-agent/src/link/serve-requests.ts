import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf, messageOf } from '@firecrew/base';
import type { LinkStream } from '@firecrew/link';
import { decodeMessage, type HealthReply, HOST_REQUEST_TYPES, type HostRequest, hostRequestSchema, type Reply } from '@firecrew/protocol';
import type { ExecUser } from '../agent-config.ts';
import type { ExecTable } from '../exec/exec-table.ts';
import { receivePut } from '../files/put-tree.ts';
import type { SentTrees } from '../files/sent-trees.ts';

/** What the requests of the host are carried out with. */
export interface Services {
  readonly execs: ExecTable;
  readonly trees: SentTrees;
  /** Whose the trees are that the host puts here; null: the agent's own. */
  readonly user: ExecUser | null;
  /** Adds to the clock first, where this is a VM. */
  readonly health: (addClockMs: number | undefined) => Promise<HealthReply>;
  /** Ends the agent once the answer has left; the folders are removed when nothing runs any more. */
  readonly shutdown: (forget: readonly string[]) => void;
}

/** Serves one stream of the host. A fault in it ends that stream alone. */
export async function serveRequest(stream: LinkStream, head: unknown, services: Services): Promise<void> {
  const request = decodeMessage(hostRequestSchema, HOST_REQUEST_TYPES, head);
  const answer = new Answer(stream);
  try {
    if (request.ok) await serve(answer, request.value, services);
    else answer.fail(request.code, request.message);
  } catch (error) {
    answer.fail(codeOf(error) ?? 'internal_error', messageOf(error));
  }
}

async function serve(answer: Answer, request: HostRequest, services: Services): Promise<void> {
  const { execs, trees } = services;
  switch (request.t) {
    case 'health':
      return answer.whole(await services.health(request.addClockMs));
    case 'exec':
      await execs.start(request);
      return answer.whole({ ok: true });
    case 'kill':
      execs.kill(request.id, request.signal);
      return answer.whole({ ok: true });
    case 'wait': {
      const ended = execs.wait(request.id);
      answer.accept();
      return answer.end({ ok: true, end: await ended });
    }
    case 'follow': {
      const output = execs.follow(request.id, request.offset);
      return pipeline(Readable.from(output, { objectMode: false }), answer.accept().resume());
    }
    case 'put':
      return answer.end({ ok: true, ...(await receivePut(answer.accept(), request, services.user)) });
    case 'get': {
      const tree = await trees.open(request);
      return trees.send(tree, answer.accept().resume());
    }
    case 'trailer': {
      const trailer = await trees.trailer(request.id);
      answer.accept();
      return answer.end(trailer);
    }
    case 'shutdown':
      answer.whole({ ok: true });
      return services.shutdown(request.forget ?? []);
  }
}

/** The answer on one stream: a head, then at most one JSON value or raw bytes. */
class Answer {
  readonly #stream: LinkStream;
  #hasHead = false;

  constructor(stream: LinkStream) {
    this.#stream = stream;
  }

  /** Sends the head that takes the request; what follows is bytes, or one value by `end`. */
  accept(): LinkStream {
    this.#head({ ok: true });
    return this.#stream;
  }

  /** Sends an answer that is its head alone. */
  whole(head: Reply | HealthReply): void {
    this.#head(head);
    this.#finish();
  }

  /** Ends an accepted request with its value. */
  end(body: unknown): void {
    this.#finish(JSON.stringify(body));
  }

  /** Tells a failure: in the head while there is none, else in the body. */
  fail(code: string, message: string): void {
    const refusal = { ok: false, code: code.slice(0, 64), message: message.slice(0, 1000) } as const;
    if (this.#stream.destroyed) return;
    if (this.#hasHead) this.end(refusal);
    else this.whole(refusal);
  }

  #head(head: Reply | HealthReply): void {
    this.#hasHead = true;
    this.#stream.reply(head);
  }

  #finish(body?: string): void {
    if (this.#stream.destroyed) return;
    this.#stream.end(body);
    // What the host still sends is dropped, so that it comes to its end and reads the answer.
    this.#stream.resume();
  }
}
