import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ModelProxyLimits } from './limits.ts';

interface State {
  /** Requests that are not answered yet. */
  pending: number;
  /** Nothing is taken from it any more. */
  isOver: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** The connections of a guest with their deadlines: for a first head, for silence between requests, and for reading a last answer. */
export class GuestConnections {
  readonly #limits: ModelProxyLimits;
  readonly #states = new Map<Duplex, State>();

  constructor(limits: ModelProxyLimits) {
    this.#limits = limits;
  }

  add(stream: Duplex): void {
    const state: State = { pending: 0, isOver: false, timer: undefined };
    this.#states.set(stream, state);
    this.#within(stream, state, this.#limits.headMs);
    stream.once('close', () => {
      clearTimeout(state.timer);
      this.#states.delete(stream);
    });
  }

  /** A request has come; false where its connection takes none any more. */
  begin(stream: Duplex, response: ServerResponse): boolean {
    const state = this.#states.get(stream);
    if (state === undefined || state.isOver) {
      response.destroy();
      return false;
    }
    clearTimeout(state.timer);
    state.pending += 1;
    response.once('close', () => {
      state.pending -= 1;
      if (!response.writableFinished) stream.destroy();
      else if (!response.shouldKeepAlive) this.#linger(stream, state);
      else if (state.pending === 0) this.#within(stream, state, this.#limits.idleMs);
    });
    return true;
  }

  /** Answers what could not be read as a request, where nothing else is being answered. */
  refuse(stream: Duplex, status: number, reason: string, body: string): void {
    const state = this.#states.get(stream);
    if (state === undefined || state.isOver || state.pending > 0) {
      stream.destroy();
      return;
    }
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\ncontent-type: application/json\r\nx-firecrew-reason: ${reason}\r\n`;
    stream.end(`${head}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);
    this.#linger(stream, state);
  }

  destroyAll(): void {
    for (const stream of [...this.#states.keys()]) stream.destroy();
  }

  /** What the guest still sends is thrown away, so that it reads its answer; then the stream goes. */
  #linger(stream: Duplex, state: State): void {
    state.isOver = true;
    stream.removeAllListeners('data').resume();
    this.#within(stream, state, this.#limits.lingerMs);
  }

  #within(stream: Duplex, state: State, ms: number): void {
    clearTimeout(state.timer);
    state.timer = setTimeout(() => stream.destroy(), ms);
    state.timer.unref();
  }
}
