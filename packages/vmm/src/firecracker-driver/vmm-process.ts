import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { identifyProcess, isAlive, messageOf, type ProcessIdentity, signalProcess } from '@firecrew/base';
import type { VmExit } from '../port/driver.ts';
import { type Jail, jailFailed } from './jail.ts';

/** Time the jailer has to write the id of a process that is no child of ours, in `ms`. */
export const PID_FILE_TIMEOUT_MS = 15_000;
/** Pause between two looks at a process that is no child of ours, in `ms`. */
const WATCH_PAUSE_MS = 50;
/** Time a killed process has to go, in `ms`; one that the kernel holds on to is reported as left. */
const KILL_WAIT_MS = 10_000;
/** Bytes of the messages of jailer and VMM that are kept. */
const MESSAGE_BYTES = 4096;
/** Characters of a command line that are looked at. */
const COMMAND_LINE_CHARS = 16_384;

/** How a VMM ended; null where it is no child of ours. */
export type ProcessEnd = Pick<VmExit, 'code' | 'signal'> | null;

/** The process of one Firecracker. */
export interface VmmProcess {
  readonly exited: Promise<ProcessEnd>;
  /** The end of what jailer and VMM said beside console and log. */
  readonly messages: () => string;
  /** Ends it at once and waits until it is gone, for a bounded time. */
  readonly kill: () => Promise<void>;
}

/** Starts a program that is, or becomes, Firecracker itself. */
export function spawnVmm(program: string, args: readonly string[], options: SpawnOptions): VmmProcess {
  const child = spawn(program, args, options);
  const messages = collectMessages(child);
  const exited = endOf(child, messages);
  return {
    exited,
    messages: messages.text,
    kill: async () => {
      child.kill('SIGKILL');
      await within(exited, KILL_WAIT_MS);
    },
  };
}

/**
 * Starts a jailer that leaves Firecracker to itself, and takes its process from the file in the jail. The pid counts together with its
 * start time, and only when its command line is the jail's. Rejects with `jail_failed`; then nothing of it runs.
 */
export async function adoptVmm(program: string, args: readonly string[], options: SpawnOptions, jail: Jail): Promise<VmmProcess> {
  const starter = spawnVmm(program, args, options);
  let end: ProcessEnd | undefined;
  void starter.exited.then((value) => {
    end = value;
  });
  for (const from = performance.now(); ; await delay(WATCH_PAUSE_MS / 5)) {
    const identity = readIdentity(jail);
    if (typeof identity === 'object') return adopted(identity, starter);
    const isOver = identity === 'gone' || (end !== undefined && end?.code !== 0);
    if (!isOver && performance.now() - from < PID_FILE_TIMEOUT_MS) continue;
    await starter.kill();
    throw jailFailed(jail.id, `the jailer started nothing: ${starter.messages() || 'it said nothing'}`);
  }
}

function adopted(identity: ProcessIdentity, starter: VmmProcess): VmmProcess {
  const exited = (async (): Promise<ProcessEnd> => {
    while (isAlive(identity)) await delay(WATCH_PAUSE_MS);
    return null;
  })();
  return {
    exited,
    messages: starter.messages,
    kill: async () => {
      signalProcess(identity, 'SIGKILL');
      await within(exited, KILL_WAIT_MS);
    },
  };
}

async function within(exited: Promise<unknown>, ms: number): Promise<void> {
  const timer = new AbortController();
  await Promise.race([exited, delay(ms, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}

/** The process of the jail's file: undefined until it is written, `gone` when it runs no more, or is another's by now. */
function readIdentity(jail: Jail): ProcessIdentity | 'gone' | undefined {
  let text: string;
  try {
    text = readFileSync(jail.pidFile, 'latin1').trim();
  } catch {
    return undefined;
  }
  if (!/^[1-9][0-9]{0,9}$/.test(text)) return undefined;
  const identity = identifyProcess(Number(text));
  return identity !== undefined && commandLine(identity.pid).includes(`\0--id\0${jail.id}\0`) ? identity : 'gone';
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').slice(0, COMMAND_LINE_CHARS);
  } catch {
    return '';
  }
}

interface Messages {
  readonly add: (text: string) => void;
  readonly text: () => string;
}

function collectMessages(child: ChildProcess): Messages {
  let kept = '';
  const add = (text: string): void => {
    kept = (kept + text).slice(-MESSAGE_BYTES);
  };
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => add(part.toString('latin1')));
  return {
    add,
    text: () =>
      kept
        .replace(/[^\x20-\x7e]+/g, ' ')
        .trim()
        .slice(-400),
  };
}

function endOf(child: ChildProcess, messages: Messages): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', (error) => {
      messages.add(messageOf(error));
      resolve({ code: null, signal: null });
    });
  });
}
