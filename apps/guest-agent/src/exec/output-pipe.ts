import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { connect, createServer, Socket } from 'node:net';
import { join } from 'node:path';
import type { ExecUser } from '../agent-config.ts';
import { FIFO_TIMEOUT_MS } from './limits.ts';

/** One pipe for both outputs of a process, so that their order is kept. */
export interface OutputPipe {
  readonly reader: Socket;
  /** For both entries of `stdio`. */
  readonly writer: number | Socket;
  /** Closes this side's hold of the write end, once the process has its own. */
  closeWriter(): void;
}

/**
 * Opens the pipe. A FIFO where the system has `mkfifo`, since a socket cannot be opened again as `/dev/stderr`, which many scripts
 * do; else a pair of sockets, so that nothing is needed of an image.
 */
export async function openOutputPipe(
  folder: string,
  id: string,
  options: { readonly user?: ExecUser | null; readonly mkfifo?: string } = {},
): Promise<OutputPipe> {
  const path = join(folder, `pipe-${id}`);
  try {
    const isFifo = await makeFifo(path, options.mkfifo ?? 'mkfifo');
    // Commands open their output again by name (`/dev/stderr`).
    if (isFifo && options.user != null) await chown(path, options.user.uid, options.user.gid);
    return isFifo ? openFifo(path) : await openSocketPair(path);
  } finally {
    rmSync(path, { force: true });
  }
}

function makeFifo(path: string, program: string): Promise<boolean> {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };
  return new Promise((resolve) => {
    execFile(program, ['-m', '600', path], { env, timeout: FIFO_TIMEOUT_MS, killSignal: 'SIGKILL' }, (error) => resolve(error === null));
  });
}

function openFifo(path: string): OutputPipe {
  // Without O_NONBLOCK the open of the read end would wait for a writer.
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  const writing = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  return {
    reader: new Socket({ fd: reading, readable: true, writable: false }),
    writer: writing,
    closeWriter: () => closeSync(writing),
  };
}

/** Two connected sockets; a path in the private folder exists for a moment. */
function openSocketPair(path: string): Promise<OutputPipe> {
  return new Promise((resolve, reject) => {
    const server = createServer({ pauseOnConnect: true });
    server.once('error', reject);
    server.listen(path, () => {
      const writer = connect(path);
      writer.once('error', reject);
      server.once('connection', (reader) => {
        server.close();
        writer.off('error', reject).on('error', () => undefined);
        resolve({ reader, writer, closeWriter: () => void writer.destroy() });
      });
    });
  });
}
