import type { Socket } from 'node:net';
import { CodedError } from '@firecrew/base';

/** Bytes of one line of the monitor; the longest answer we ask for has a few hundred. */
export const MAX_QMP_LINE_BYTES = 65_536;
/** Time for one answer, in `ms`. */
export const QMP_TIMEOUT_MS = 5000;
/** Events that are kept; a guest can make QEMU repeat some of them for ever. */
export const MAX_QMP_EVENTS = 64;

/** One event of QEMU's monitor. */
export interface QmpEvent {
  readonly name: string;
  /** `reason` of a SHUTDOWN, else undefined. */
  readonly reason: string | undefined;
}

interface Waiter {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The host's end of one QEMU's monitor (QMP). QEMU itself may be taken over by its guest, so lines are bounded and what is no
 * answer of ours is dropped.
 */
export class QmpClient {
  readonly events: QmpEvent[] = [];
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiter>();
  #pending = Buffer.alloc(0);
  #nextId = 1;
  #ended: CodedError | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (part) => this.#take(part));
    socket.on('error', () => this.#end('the monitor failed'));
    socket.on('close', () => this.#end('the monitor was closed'));
  }

  /** Leaves the negotiation mode; nothing else is answered before. */
  async start(): Promise<void> {
    await this.execute('qmp_capabilities');
  }

  /** Sends a command with its arguments and gives its `return`. Rejects with `qmp_failed`. */
  execute(command: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(failed(`${command} got no answer within ${QMP_TIMEOUT_MS} ms`))), QMP_TIMEOUT_MS);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        act();
      };
      this.#waiting.set(id, {
        resolve: (value) => settle(() => resolve(value)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    });
  }

  close(): void {
    this.#end('the monitor was closed');
  }

  #take(part: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, part]);
    for (let end = this.#pending.indexOf(0x0a); end >= 0; end = this.#pending.indexOf(0x0a)) {
      const line = this.#pending.subarray(0, end).toString('utf8');
      this.#pending = this.#pending.subarray(end + 1);
      this.#line(line);
    }
    if (this.#pending.length > MAX_QMP_LINE_BYTES) this.#end(`the monitor sent a line of more than ${MAX_QMP_LINE_BYTES} bytes`);
  }

  #line(line: string): void {
    const message = parseLine(line);
    if (message === undefined) return;
    if (typeof message.event === 'string') {
      const reason = isRecord(message.data) && typeof message.data.reason === 'string' ? message.data.reason : undefined;
      if (this.events.length < MAX_QMP_EVENTS) this.events.push({ name: message.event.slice(0, 64), reason: reason?.slice(0, 64) });
      return;
    }
    const waiter = typeof message.id === 'number' ? this.#waiting.get(message.id) : undefined;
    if (waiter === undefined) return;
    if ('return' in message) waiter.resolve(message.return);
    else waiter.reject(failed(isRecord(message.error) ? String(message.error.desc).slice(0, 200) : 'it answered with neither'));
  }

  #end(why: string): void {
    this.#ended ??= failed(why);
    this.#socket.destroy();
    for (const waiter of [...this.#waiting.values()]) waiter.reject(this.#ended);
  }
}

interface QmpMessage {
  readonly event?: unknown;
  readonly data?: unknown;
  readonly id?: unknown;
  readonly return?: unknown;
  readonly error?: unknown;
}

function parseLine(line: string): QmpMessage | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function failed(why: string): CodedError {
  return new CodedError('qmp_failed', `QEMU's monitor did not do what it was asked: ${why}.`, {
    action: 'Destroy the VM and start the attempt again.',
  });
}
