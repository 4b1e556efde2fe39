import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { basename, dirname } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';

/** A held lock; the kernel lets it go when this process dies, however it dies. */
export interface DirectoryLock {
  /** The abstract socket's name without its leading NUL. */
  readonly name: string;
  release(): Promise<void>;
}

/** What the holder of a lock says about itself to whoever connects. */
interface Holder {
  readonly pid: number;
  readonly path: string;
}

/** How long the holder of a lock may take to say who it is. */
const HOLDER_ANSWER_MS = 1_000;
/** How many bytes of a holder's answer are read; anyone on the machine may hold the name. */
const HOLDER_ANSWER_MAX_BYTES = 8_192;

/**
 * Takes the machine-wide lock on `path`, which need not exist yet; its parent must. The lock is an abstract Unix
 * socket named by uid, device and inode of the parent and the last part of the path, so two spellings of a path
 * are one lock, as are two users, nothing is left on disk, and a dead holder cannot leave a stale one. It excludes within one
 * network namespace. Throws `directory_locked` (another holder) or `lock_name_taken` (the holder does not identify itself).
 */
export async function lockDirectory(path: string): Promise<DirectoryLock> {
  const parent = dirname(path);
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const full = `${realpathSync(parent)}/${basename(path)}`;
  const { dev, ino } = lstatSync(realpathSync(parent));
  const name = `firecrew-lock/${dev}/${ino}/${basename(path)}`;
  if (Buffer.byteLength(name) > 106) throw new CodedError('lock_name_too_long', `the name of ${path} is too long for a lock`, { id: path });
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.end(JSON.stringify({ pid: process.pid, path: full } satisfies Holder));
  });
  await bind(server, `\0${name}`).catch(async (error: unknown) => {
    if (codeOf(error) === 'EADDRINUSE') throw await describeHolder(path, full, `\0${name}`);
    throw error;
  });
  return { name, release: () => close(server) };
}

function bind(server: Server, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve();
    server.close(() => resolve());
  });
}

async function describeHolder(path: string, full: string, address: string): Promise<CodedError> {
  const holder = await askHolder(address);
  if (holder?.path === full) {
    return new CodedError('directory_locked', `${path} is in use by process ${holder.pid}`, {
      id: path,
      action: `Use the running server, or stop process ${holder.pid} first.`,
    });
  }
  return new CodedError('lock_name_taken', `the lock of ${path} is held by a process that does not say it uses that folder`, {
    id: path,
    action: 'Look for the owner of the abstract socket in /proc/net/unix and stop it.',
  });
}

function askHolder(address: string): Promise<Holder | undefined> {
  return new Promise((resolve) => {
    const socket = connect(address);
    let text = '';
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parseHolder(text));
    };
    const timer = setTimeout(finish, HOLDER_ANSWER_MS);
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => {
      text += part;
      if (text.length > HOLDER_ANSWER_MAX_BYTES) finish();
    });
    socket.on('end', finish);
    socket.on('error', finish);
  });
}

function parseHolder(text: string): Holder | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('pid' in value) || !('path' in value)) return undefined;
    const { pid, path } = value;
    return typeof pid === 'number' && Number.isSafeInteger(pid) && typeof path === 'string' ? { pid, path } : undefined;
  } catch {
    return undefined;
  }
}
