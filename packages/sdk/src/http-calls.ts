import { errorBodySchema } from '@firecrew/protocol';
import type { Dispatcher } from 'undici';
import type * as z from 'zod';
import { FirecrewApiError } from './api-error.ts';

/** How long an answer may take to begin, in ms. The base of a large upload is made before a mission is answered. */
export const ANSWER_TIMEOUT_MS = 600_000;
/** How long a stream may be silent, in ms: three heartbeats of the server. */
export const STREAM_SILENCE_MS = 45_000;
/** Characters of a reply that is no JSON of ours which an error quotes. */
const QUOTED_CHARS = 200;

/** Where a server is: fixed, or asked anew for every call, since a restarted one may have another address. */
export type ServerAddress = string | (() => string | Promise<string>);

/** What every call needs. */
export interface CallContext {
  readonly address: ServerAddress;
  readonly token: string;
  readonly dispatcher: Dispatcher | undefined;
}

/** One request. */
export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: Dispatcher.DispatchOptions['body'];
  readonly signal?: AbortSignal | undefined;
  readonly bodyTimeoutMs?: number;
}

/** Sends one request; an answer that is no success is thrown as the error it carries. */
export async function send(context: CallContext, call: Call): Promise<Dispatcher.ResponseData> {
  const answer = await sendAny(context, call);
  if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
  throw await readError(answer, call);
}

/** Sends one request and gives whatever answer comes. Throws `unreachable`. */
export async function sendAny(context: CallContext, call: Call): Promise<Dispatcher.ResponseData> {
  const base = typeof context.address === 'string' ? context.address : await context.address();
  const { directConnections, request } = await import('./http-client.ts');
  const url = new URL(call.path, base);
  for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, String(value));
  const dispatcher = context.dispatcher ?? directConnections(url);
  const headers: Record<string, string> = { authorization: `Bearer ${context.token}`, ...call.headers };
  if (call.json !== undefined) headers['content-type'] = 'application/json';
  try {
    return await request(url, {
      method: call.method,
      headers,
      body: call.json === undefined ? (call.body ?? null) : JSON.stringify(call.json),
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: call.bodyTimeoutMs ?? ANSWER_TIMEOUT_MS,
      ...(call.signal === undefined ? {} : { signal: call.signal }),
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
  } catch (cause) {
    throw unreachable(url.origin, call, cause);
  }
}

/** Sends one request and reads its answer by `schema`. Throws `bad_reply` for one of another shape. */
export async function sendFor<T>(context: CallContext, call: Call, schema: z.ZodType<T>): Promise<T> {
  return await readReply(await send(context, call), call, schema);
}

/** Reads a JSON answer by `schema`. */
export async function readReply<T>(answer: Dispatcher.ResponseData, call: Call, schema: z.ZodType<T>): Promise<T> {
  const text = await answer.body.text().catch((cause: unknown) => {
    throw unreachable('the server', call, cause);
  });
  const parsed = schema.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues.map((issue) => `${issue.path.map(String).join('.') || '(top)'}: ${issue.message}`).join('; ');
  throw new FirecrewApiError({
    code: 'bad_reply',
    message: `the answer to ${call.method} ${call.path} has another shape than this client knows: ${where.slice(0, 1000)}`,
    action: 'Use a client and a server of the same version.',
    status: answer.statusCode,
  });
}

async function readError(answer: Dispatcher.ResponseData, call: Call): Promise<FirecrewApiError> {
  const text = await answer.body.text().catch(() => '');
  const parsed = errorBodySchema.safeParse(jsonOf(text));
  // any code: it comes from the server
  if (parsed.success) return new FirecrewApiError({ ...parsed.data.error, status: answer.statusCode });
  return new FirecrewApiError({
    code: 'bad_reply',
    message: `${call.method} ${call.path} was answered with ${answer.statusCode}: ${JSON.stringify(text.slice(0, QUOTED_CHARS))}`,
    action: 'Check that a Firecrew server answers at that address.',
    status: answer.statusCode,
  });
}

/** No answer came, or it broke off. */
export function unreachable(what: string, call: Call, cause: unknown): FirecrewApiError {
  const reason = cause instanceof Error ? (cause.message === '' ? cause.name : cause.message) : String(cause);
  return new FirecrewApiError({
    code: 'unreachable',
    message: `${what} gave no whole answer to ${call.method} ${call.path}: ${reason}`,
    action: 'Check that the server runs: firecrew status',
    status: null,
    cause,
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
