import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Limits of the server in Firecracker, in bytes. */
export const MAX_LINE_BYTES = 1024;
export const MAX_BODY_BYTES = 51_200;
/** Time between a request and its turn, in `ms`. */
const TURN_MS = 2;

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly body?: string;
  readonly deprecated?: boolean;
}

/** Answers one request; all connections share one thread, so the answers come one after another. */
export type Serve = (request: HttpRequest) => Promise<HttpAnswer | 'never'>;

/** One connection of the API, with the oddities of that server: no chunked bodies, no half-close, errors that are no JSON. */
export class HttpConnection {
  readonly #socket: Socket;
  readonly #serve: Serve;
  #pending = Buffer.alloc(0);
  #head: { readonly method: string; readonly path: string; readonly length: number } | undefined;
  #isBroken = false;

  constructor(socket: Socket, serve: Serve) {
    this.#socket = socket;
    this.#serve = serve;
    socket.on('data', (part) => this.#take(part));
    // The peer's half-close drops the connection with every answer that is due.
    socket.on('end', () => socket.destroy());
    socket.on('error', () => socket.destroy());
  }

  #take(part: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, part]);
    while (!this.#isBroken && this.#takeOne());
  }

  #takeOne(): boolean {
    this.#head ??= this.#takeHead();
    if (this.#head === undefined || this.#pending.length < this.#head.length) return false;
    const { method, path, length } = this.#head;
    const body = this.#pending.subarray(0, length).toString('utf8');
    this.#pending = this.#pending.subarray(length);
    this.#head = undefined;
    void this.#answer({ method, path, body });
    return true;
  }

  async #answer(request: HttpRequest): Promise<void> {
    // The end of the peer's side is seen with its last bytes there.
    await delay(TURN_MS);
    if (this.#socket.destroyed || this.#isBroken) return;
    const answer = await this.#serve(request);
    if (answer !== 'never' && !this.#socket.destroyed) this.#socket.write(renderAnswer(answer));
  }

  #takeHead(): { method: string; path: string; length: number } | undefined {
    const end = this.#pending.indexOf('\r\n\r\n');
    if (end < 0) {
      if (this.#pending.length - this.#pending.lastIndexOf('\r\n') > MAX_LINE_BYTES) this.#fail('The line is too long.');
      return undefined;
    }
    const [first = '', ...headers] = this.#pending.subarray(0, end).toString('latin1').split('\r\n');
    if ([first, ...headers].some((line) => line.length > MAX_LINE_BYTES)) return this.#fail('The line is too long.');
    const [method = '', path = '', version = ''] = first.split(' ');
    if (!['GET', 'PUT', 'PATCH', 'DELETE'].includes(method)) return this.#fail('Invalid HTTP Method.');
    if (!/^HTTP\/1\.[01]$/.test(version)) return this.#fail('Invalid HTTP version.');
    const length = Number(headerOf(headers, 'content-length') ?? 0);
    if (!Number.isSafeInteger(length)) return this.#fail('Invalid value in the Content-Length header.');
    if (length > MAX_BODY_BYTES) {
      return this.#fail(`Request payload with size ${length} is larger than the limit of ${MAX_BODY_BYTES} allowed by server.`);
    }
    this.#pending = this.#pending.subarray(end + 4);
    if (headerOf(headers, 'expect')?.toLowerCase() === '100-continue') this.#socket.write('HTTP/1.1 100 \r\n\r\n');
    return { method, path, length };
  }

  /** The newline in the middle of its string makes the body no JSON. */
  #fail(reason: string): undefined {
    this.#isBroken = true;
    const body = `{ "error": "${reason}\nAll previous unanswered requests will be dropped." }`;
    this.#socket.end(renderAnswer({ status: 400, body }));
    return undefined;
  }
}

function headerOf(lines: readonly string[], name: string): string | undefined {
  return lines
    .find((line) => line.toLowerCase().startsWith(`${name}:`))
    ?.slice(name.length + 1)
    .trim();
}

/** The status line has no reason, only the blank before it. */
export function renderAnswer({ status, body, deprecated }: HttpAnswer): string {
  const lines = [
    `HTTP/1.1 ${status} `,
    'Server: Firecracker API',
    'Connection: keep-alive',
    ...(deprecated === true ? ['Deprecation: true'] : []),
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}
