import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { codeOf } from './coded-error.ts';

/** A right that one process of a host has at a time. */
export interface HostLock {
  /** Name of the socket, as `/proc/net/unix` has it behind an `@` for its first byte. */
  readonly name: string;
  release(): void;
}

/**
 * Takes the right of a name, or gives undefined where another process has it, of whatever user. It is an abstract socket (`name` begins with
 * a NUL and has at most 107 bytes): the kernel lets it go when its process ends, however it ends. Who connects to it is cut off at its release.
 */
export async function tryHostLock(name: string): Promise<HostLock | undefined> {
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => waiting.delete(socket));
    socket.resume();
  });
  try {
    await once(server.listen(name), 'listening');
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return undefined;
    throw error;
  }
  return {
    name,
    release: () => {
      server.close();
      for (const socket of waiting) socket.destroy();
    },
  };
}
