import type { Duplex } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { checkIdentity } from './check-identity.ts';
import { processClock } from './clock.ts';
import { resyncPadding } from './encode-frame.ts';
import { endStream } from './end-stream.ts';
import { fillLimits } from './limits.ts';
import { LinkSession } from './link-session.ts';
import { ANSWER_BYTES, ANSWER_MAGIC, type Answer, decodeAnswer, EPOCH_BYTES, encodePreamble } from './preamble.ts';
import { MagicScanner } from './scan-magic.ts';
import type { SessionOptions } from './session-options.ts';

/** What the dialling side (the guest) gives. */
export interface DialOptions extends SessionOptions {
  /** 32 bytes that the listener knows too. */
  readonly secret: Uint8Array;
  /** u32; the listener refuses another than its own. */
  readonly generation: number;
  /** On a stream without connections (virtio-serial): first completes what an earlier process left half sent. */
  readonly resync?: boolean;
  /** Source of the 8-byte epoch; default: Node's, which loads what it needs at its first use. */
  readonly randomBytes?: (length: number) => Uint8Array;
}

/** The global one: importing `node:crypto` would cost also a dialler that has a source of its own. */
function nodeRandomBytes(length: number): Uint8Array {
  return globalThis.crypto.getRandomValues(new Uint8Array(length));
}

/** Outcome of looking at the bytes so far. */
type Heard = { readonly answer: Answer; readonly rest: Uint8Array } | 'more' | 'too_much';

function answerScanner(epoch: Uint8Array, maxStaleBytes: number): (chunk: Uint8Array) => Heard {
  const wanted = (block: Uint8Array): boolean => {
    const answer = decodeAnswer(block);
    return answer !== undefined && Buffer.from(answer.epoch).equals(epoch);
  };
  const scanner = new MagicScanner({ magic: ANSWER_MAGIC, blockBytes: ANSWER_BYTES, maxStaleBytes, wanted });
  return (chunk) => {
    const result = scanner.push(chunk);
    if (result.state !== 'found') return result.state;
    const answer = decodeAnswer(result.block);
    return answer === undefined ? 'more' : { answer, rest: result.rest };
  };
}

function waitForAnswer(stream: Duplex, epoch: Uint8Array, options: DialOptions): Promise<LinkSession> {
  const limits = fillLimits(options);
  const clock = options.clock ?? processClock;
  const hear = answerScanner(epoch, limits.maxStaleBytes);
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      cancel();
      stream.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onError);
    };
    const fail = (error: CodedError): void => {
      leave();
      void endStream(stream, clock, 0);
      reject(error);
    };
    const onData = (chunk: Uint8Array): void => {
      const heard = hear(chunk);
      if (heard === 'more') return;
      if (heard === 'too_much') {
        fail(new CodedError('preamble_not_found', 'The byte stream holds no answer to this dial.'));
      } else if (heard.answer.verdict !== 'accepted') {
        fail(refusalError(heard.answer));
      } else {
        stream.pause();
        leave();
        resolve(beginSession(stream, epoch, heard.rest, options));
      }
    };
    const onEnd = (): void => fail(new CodedError('link_lost', 'The byte stream ended before the listener answered.'));
    const onError = (cause: Error): void => fail(new CodedError('link_lost', `The byte stream failed: ${cause.message}`, { cause }));
    const onLate = (): void =>
      fail(
        new CodedError('preamble_timeout', `The listener did not answer within ${limits.preambleTimeoutMs} ms.`, { action: 'Dial again.' }),
      );
    const cancel = clock.after(limits.preambleTimeoutMs, onLate);
    stream.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onError);
    if (stream.closed) onEnd();
  });
}

function refusalError(answer: Answer): CodedError {
  return new CodedError('link_refused', `The listener (generation ${answer.generation}) refused the dial: ${answer.verdict}.`, {
    id: answer.verdict,
  });
}

function beginSession(stream: Duplex, epoch: Uint8Array, rest: Uint8Array, options: DialOptions): LinkSession {
  const identity = { side: 'dialler', epoch: Buffer.from(epoch).toString('hex'), generation: options.generation } as const;
  const session = new LinkSession(stream, identity, options);
  // The caller holds the session before its first stream arrives.
  setImmediate(() => session.start(rest));
  return session;
}

/**
 * Begins a session as the dialling side and settles when the listener has accepted it. Rejects with `bad_secret_length`,
 * `bad_generation`, `link_refused` (`id` holds the verdict: `wrong_secret`, `generation_mismatch`, `refused`),
 * `preamble_timeout`, `preamble_not_found` or `link_lost`; the stream is then destroyed.
 */
export async function dialLink(stream: Duplex, options: DialOptions): Promise<LinkSession> {
  checkIdentity(options);
  const epoch = (options.randomBytes ?? nodeRandomBytes)(EPOCH_BYTES);
  const session = waitForAnswer(stream, epoch, options);
  if (options.resync === true) stream.write(resyncPadding());
  stream.write(encodePreamble({ epoch, generation: options.generation, secret: options.secret }));
  return session;
}
