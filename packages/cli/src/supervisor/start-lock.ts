import { once } from 'node:events';
import { lstatSync, readFileSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError, codeOf, isAlive } from '@firecrew/base';
import * as z from 'zod';

/** How long the holder of a lock may take to say who it is, in ms. */
export const HOLDER_ANSWER_MS = 1_500;
const HOLDER_ANSWER_MAX_BYTES = 4_096;
/** How often a holder is asked before it counts as a stranger, and the pause between, in ms: one that is killed answers with half a line or none. */
export const HOLDER_TRIES = 4;
export const HOLDER_PAUSE_MS = 300;

const holderSchema = z.object({ homeId: z.string(), pid: z.int().min(1), startTicks: z.string(), bootId: z.string() });
/** The supervisor that holds a home. */
export type LockHolder = z.infer<typeof holderSchema>;

/** What asking for the holder came to; `unknown` is a process that does not say it supervises this home. */
export type HolderAnswer =
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'holder'; readonly holder: LockHolder };

/** The abstract socket that one supervisor of a home holds: the kernel lets it go when its process ends, however it ends. */
export function lockName(root: string, uid: number): string {
  const { dev, ino } = lstatSync(root);
  return `\0firecrew-home/${uid}/${dev}/${ino}`;
}

/** Takes the start lock; undefined when another process has it. */
export async function takeLock(name: string, holder: LockHolder): Promise<{ release(): Promise<void> } | undefined> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.end(`${JSON.stringify(holder)}\n`);
  });
  try {
    await once(server.listen(name), 'listening');
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return undefined;
    throw error;
  }
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

/**
 * Asks who holds the lock of a home. Anybody on this machine may bind the name and say anything, so an answer counts only with the home's id
 * and when it names a living process of this account that looks like a supervisor of `root`. A supervisor that ends while it is asked is
 * no stranger: what is still unknown is asked again.
 */
export async function askHolder(
  name: string,
  homeId: string,
  root: string,
  supervises: (holder: LockHolder, root: string) => boolean = isSupervisorOf,
): Promise<HolderAnswer> {
  for (let tried = 1; ; tried += 1) {
    const text = await readAnswer(name);
    if (text === undefined) return { kind: 'none' };
    const holder = parseHolder(text);
    if (holder?.homeId === homeId && supervises(holder, root)) return { kind: 'holder', holder };
    if (tried === HOLDER_TRIES) return { kind: 'unknown' };
    await delay(HOLDER_PAUSE_MS);
  }
}

/** Whether a process is a supervisor of `root`: alive, of this account, and started as one. */
export function isSupervisorOf(holder: LockHolder, root: string): boolean {
  if (!isAlive(holder)) return false;
  try {
    const args = readFileSync(`/proc/${holder.pid}/cmdline`, 'utf8').split('\0');
    return statSync(`/proc/${holder.pid}`).uid === process.getuid?.() && args.includes('supervise') && args.includes(root);
  } catch {
    return false;
  }
}

/** The error for a lock that somebody else holds. */
export function lockTaken(root: string): CodedError {
  return new CodedError('home_lock_taken', `the start lock of ${root} is held by a process that does not say it supervises that home`, {
    id: root,
    action: 'Find the owner of the abstract socket firecrew-home/... in /proc/net/unix (ss -xlp) and stop it.',
  });
}

function readAnswer(name: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(name);
    let text = '';
    let connected = false;
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(connected ? text : undefined);
    };
    const timer = setTimeout(finish, HOLDER_ANSWER_MS);
    socket.setEncoding('utf8');
    socket.once('connect', () => {
      connected = true;
    });
    socket.on('data', (part: string) => {
      text += part;
      if (text.length > HOLDER_ANSWER_MAX_BYTES) finish();
    });
    socket.once('end', finish);
    socket.once('error', finish);
  });
}

function parseHolder(text: string): LockHolder | undefined {
  try {
    return holderSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
