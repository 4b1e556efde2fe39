import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { parseJson } from '@firecrew/protocol';
import type { ApiCall } from './plan-calls.ts';

/** Time for one answer, in `ms`. One request is served at a time, and its own waits for vCPUs are longer than ours. */
export const API_TIMEOUT_MS = 15_000;
/** Bytes of one answer, at most; the longest that we ask for has a few hundred. */
export const MAX_ANSWER_BYTES = 65_536;
/** Pause between two dials while the process comes up, in `ms`. */
const DIAL_PAUSE_MS = 10;

/**
 * The API of one Firecracker over one connection that is kept: its place in the ten that there are is ours, and it is dialled before
 * the guest runs, since later its folder may be a hostile VMM's to fill. Calls are made one after another.
 */
export class FirecrackerApi {
  readonly #agent: OneSocketAgent;
  #ended: CodedError | undefined;

  private constructor(socket: Socket) {
    this.#agent = new OneSocketAgent(socket);
  }

  /** Dials until the process listens. Rejects with `firecracker_failed` after `timeoutMs`, or with what `gone` rejects with. */
  static async dial(socketPath: string, options: { readonly timeoutMs: number; readonly gone: Promise<never> }): Promise<FirecrackerApi> {
    const giveUp = performance.now() + options.timeoutMs;
    for (;;) {
      try {
        return new FirecrackerApi(await Promise.race([connectTo(socketPath), options.gone]));
      } catch (error) {
        // The file appears when it is bound, and that is before the server listens.
        if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ECONNREFUSED') throw error;
        if (performance.now() > giveUp) throw failed(`its API was not there within ${options.timeoutMs} ms`, error);
      }
      await Promise.race([delay(DIAL_PAUSE_MS), options.gone]);
    }
  }

  /**
   * Makes one call and gives the JSON of its answer, undefined for none. Rejects with `firecracker_refused` and Firecracker's own
   * words, or with `firecracker_failed` when there is no answer in time; then no later call is made either.
   */
  async call({ method, path, body }: ApiCall, timeoutMs: number): Promise<unknown> {
    if (this.#ended !== undefined) throw this.#ended;
    // Always with its length: a body in chunks is taken for none.
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = bytes === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
    let answer: Answer;
    try {
      answer = await this.#exchange({ method, path, headers, timeoutMs }, bytes);
    } catch (cause) {
      this.#ended = failed(`${method} ${path} was not answered: ${messageOf(cause)}`, cause);
      this.close();
      throw this.#ended;
    }
    if (answer.status >= 200 && answer.status < 300) return answer.text === '' ? undefined : parseAnswer(method, path, answer.text);
    throw refused(method, path, answer);
  }

  close(): void {
    this.#agent.destroy();
  }

  #exchange(wanted: Wanted, bytes: Buffer | undefined): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { timeoutMs, ...options } = wanted;
      const sent = request({ ...options, agent: this.#agent, host: 'localhost' });
      const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        act();
      };
      sent.on('error', (error) => settle(() => reject(error)));
      sent.on('response', (response) => {
        readText(response).then(
          (text) => settle(() => resolve({ status: response.statusCode ?? 0, text })),
          (error: unknown) => {
            sent.destroy();
            settle(() => reject(error));
          },
        );
      });
      sent.end(bytes);
    });
  }
}

interface Wanted {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly timeoutMs: number;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Gives out one connection, and no other when that is lost. */
class OneSocketAgent extends Agent {
  readonly #socket: Socket;
  #isGivenOut = false;

  constructor(socket: Socket) {
    super({ keepAlive: true, maxSockets: 1 });
    // Between two calls nobody else listens for it.
    socket.on('error', () => undefined);
    this.#socket = socket;
  }

  override createConnection(): Socket {
    if (this.#isGivenOut || this.#socket.destroyed) throw new Error('its connection was lost');
    this.#isGivenOut = true;
    return this.#socket;
  }

  override destroy(): void {
    super.destroy();
    this.#socket.destroy();
  }
}

function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });
}

/** The body within {@link MAX_ANSWER_BYTES}. */
async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function parseAnswer(method: string, path: string, text: string): unknown {
  const parsed = parseJson(text);
  if (parsed.ok) return parsed.value;
  throw failed(`${method} ${path} was answered with something else than JSON`);
}

/** The status never tells causes apart, so the words stand in the message. Some answers are no JSON: they hold a raw newline. */
function refused(method: string, path: string, { status, text }: Answer): CodedError {
  const parsed = parseJson(text);
  const fault = parsed.ok && typeof parsed.value === 'object' && parsed.value !== null ? Object.values(parsed.value)[0] : undefined;
  const words = (typeof fault === 'string' ? fault : text).replace(/[^\x20-\x7e]+/g, ' ').slice(0, 500);
  return new CodedError('firecracker_refused', `Firecracker refused ${method} ${path} (${status}): ${words || 'without a word'}`, {
    id: path,
    action: 'Correct what it names; `firecrew doctor` checks the rest of the host.',
  });
}

/** Error of a Firecracker that did not do its part. */
export function failed(why: string, cause?: unknown): CodedError {
  return new CodedError('firecracker_failed', `Firecracker did not do what it was asked: ${why}.`, {
    action: 'Run `firecrew doctor`: it says what is missing on this host.',
    ...(cause === undefined ? {} : { cause }),
  });
}
