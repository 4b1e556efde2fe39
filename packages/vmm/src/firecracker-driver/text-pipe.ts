import { execFile } from 'node:child_process';
import { constants, openSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { CodedError, messageOf } from '@firecrew/base';
import { ConsoleTail } from '../machine/console-tail.ts';
import { giveTo } from '../machine/vm-folder.ts';
import type { GuestOwner } from '../port/driver.ts';

const FIFO_TIMEOUT_MS = 10_000;
const CHUNK_BYTES = 65_536;

/**
 * A named pipe that a VMM writes text to, and the end of that text. The VMM opens it without blocking: what nobody has read in time is
 * lost, so no writer ever waits and no disk fills.
 */
export class TextPipe {
  readonly tail = new ConsoleTail();
  readonly #fd: number;
  readonly #socket: Socket;
  #isClosed = false;

  private constructor(fd: number) {
    this.#fd = fd;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket.on('data', (part: Buffer) => this.tail.add(part));
    this.#socket.on('error', () => undefined);
  }

  /** Makes the pipes and opens them before the VMM can put something else in their place. Throws `pipe_failed`. */
  static async open(paths: readonly string[], owner: GuestOwner | undefined): Promise<TextPipe[]> {
    await makeFifos(paths);
    const pipes: TextPipe[] = [];
    try {
      for (const path of paths) {
        // Held open for writing too: without a writer it would be at its end.
        pipes.push(new TextPipe(openSync(path, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW)));
        await giveTo(owner, path, 0o600);
      }
      return pipes;
    } catch (cause) {
      for (const pipe of pipes) pipe.close();
      throw failedPipe(paths, cause);
    }
  }

  /** Takes what is in the pipe and has not been announced yet, for the time when the writer is gone. */
  drain(): void {
    if (this.#isClosed) return;
    const part = Buffer.alloc(CHUNK_BYTES);
    try {
      for (let bytes = readSync(this.#fd, part); bytes > 0; bytes = readSync(this.#fd, part))
        this.tail.add(Buffer.from(part.subarray(0, bytes)));
    } catch {
      // EAGAIN: it is empty.
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }
}

function makeFifos(paths: readonly string[]): Promise<void> {
  const options = { env: { PATH: '/usr/local/bin:/usr/bin:/bin' }, timeout: FIFO_TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
  return new Promise((resolve, reject) => {
    execFile('mkfifo', ['-m', '600', '--', ...paths], options, (error, _stdout, stderr) => {
      if (error === null) return resolve();
      reject(failedPipe(paths, stderr.trim() === '' ? error : new Error(stderr.trim())));
    });
  });
}

function failedPipe(paths: readonly string[], cause: unknown): CodedError {
  return new CodedError('pipe_failed', `The pipes ${paths.join(', ')} could not be made: ${messageOf(cause)}`, {
    id: paths[0] ?? 'pipe',
    action: 'See that the disk of the host has room and that `mkfifo` is there.',
    cause,
  });
}
