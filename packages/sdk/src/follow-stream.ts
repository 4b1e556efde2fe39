import type * as z from 'zod';
import { FirecrewApiError } from './api-error.ts';
import { type Call, type CallContext, STREAM_SILENCE_MS, send, unreachable } from './http-calls.ts';
import { EventStreamParser } from './parse-event-stream.ts';

/** Pauses between attempts to reconnect, in ms; the last one is repeated. */
export const RECONNECT_PAUSES_MS: readonly number[] = [100, 250, 500, 1_000, 2_000];

/** How a stream is followed. */
export interface FollowOptions {
  readonly signal?: AbortSignal | undefined;
  /** Reconnect when the stream breaks; default true. A refusal of the server (4xx) always ends it. */
  readonly reconnect?: boolean | undefined;
  /** Told before each pause; a throw of it ends the stream with that error. */
  readonly onReconnect?: ((error: FirecrewApiError, attempt: number) => void) | undefined;
}

/** One stream: where it is, where it begins, which message carries items of which shape. */
export interface StreamSource<T> {
  readonly path: string;
  readonly event: string;
  readonly schema: z.ZodType<T>;
  readonly lastEventId: string | undefined;
}

/**
 * Follows an event stream until the server says `done`. After a break it goes on behind the last message that was read: nothing is
 * lost, nothing is repeated.
 */
export async function* followStream<T>(context: CallContext, source: StreamSource<T>, options: FollowOptions): AsyncGenerator<T> {
  const position = { lastEventId: source.lastEventId };
  for (let attempt = 0; ; attempt += 1) {
    try {
      for await (const item of readOnce(context, source, position, options.signal)) {
        attempt = 0;
        yield item;
      }
      return;
    } catch (error) {
      if (isGone(options.signal)) return;
      if (!(error instanceof FirecrewApiError) || !isPassing(error) || options.reconnect === false) throw error;
      options.onReconnect?.(error, attempt);
      await pause(RECONNECT_PAUSES_MS[Math.min(attempt, RECONNECT_PAUSES_MS.length - 1)] ?? 1_000, options.signal);
      if (isGone(options.signal)) return;
    }
  }
}

function isGone(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** What may be gone at the next try: no answer, or a server that is starting or has lost its database. */
function isPassing(error: FirecrewApiError): boolean {
  return error.status === null || error.status >= 500;
}

async function* readOnce<T>(
  context: CallContext,
  source: StreamSource<T>,
  position: { lastEventId: string | undefined },
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  const resume = position.lastEventId === undefined ? {} : { 'last-event-id': position.lastEventId };
  const call: Call = {
    method: 'GET',
    path: source.path,
    headers: { accept: 'text/event-stream', ...resume },
    signal,
    bodyTimeoutMs: STREAM_SILENCE_MS,
  };
  const answer = await send(context, call);
  const parser = new EventStreamParser();
  try {
    for await (const bytes of answer.body as AsyncIterable<Uint8Array>) {
      for (const message of parser.push(bytes)) {
        if (message.event === 'done') return;
        if (message.event !== source.event) continue;
        yield decode(source, message.data);
        if (message.id !== undefined) position.lastEventId = message.id;
      }
    }
  } catch (cause) {
    throw cause instanceof FirecrewApiError ? cause : unreachable('the server', call, cause);
  } finally {
    answer.body.destroy();
  }
  throw unreachable('the server', call, new Error('the stream ended before the mission did'));
}

function decode<T>(source: StreamSource<T>, data: string): T {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    value = undefined;
  }
  const parsed = source.schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new FirecrewApiError({
    code: 'bad_reply',
    message: `a message of ${source.path} has another shape than this client knows: ${parsed.error.issues[0]?.message ?? ''}`,
    action: 'Use a client and a server of the same version.',
    status: 200,
  });
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(finish, ms);
    function finish(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      resolve();
    }
    signal?.addEventListener('abort', finish, { once: true });
  });
}
