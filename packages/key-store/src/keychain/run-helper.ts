import { spawn } from 'node:child_process';
import type { StoreError } from '@firecrew/seat-keys';
import { storeErrorOf } from '@firecrew/seat-keys';

/** How long a credential helper may take, in ms: time for a person to answer its prompt, and an end for one that nobody sees. */
export const HELPER_TIMEOUT_MS = 60_000;
/** How long the pipes of a helper that has ended may stay open, in ms. */
const PIPE_GRACE_MS = 500;
/** Most bytes of a helper's output, and of its errors, that are kept. */
const MAX_OUTPUT_BYTES = 64 * 1024;
/** What a helper gets of the environment: how to find its service, and nothing that could be a secret of ours. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'DBUS_SESSION_BUS_ADDRESS',
  'XDG_RUNTIME_DIR',
  'XDG_DATA_HOME',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XAUTHORITY',
] as const;

/** One call of a helper. What is secret goes to `input`, its standard input, alone. */
export interface HelperCall {
  readonly program: string;
  readonly args: readonly string[];
  readonly input?: string;
}

/** Where helpers are looked for, and how long they may take. */
export interface HelperPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** In ms. */
  readonly timeoutMs: number;
}

/** How a call ended. `stdout` and `stderr` may hold secrets: they are looked at and dropped, and never become a part of a message. */
export type HelperEnd =
  | { readonly status: 'ended'; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly status: 'broken'; readonly error: StoreError };

/** Runs a helper in a process group of its own, which is killed when the time is up or its output has no end. Never throws. */
export async function runHelper({ program, args, input }: HelperCall, { env, timeoutMs }: HelperPlace): Promise<HelperEnd> {
  const passed = Object.fromEntries(PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  return await new Promise<HelperEnd>((resolve) => {
    // Its messages are told apart by words, so it speaks one language.
    const child = spawn(program, args, { cwd: '/', env: { ...passed, LC_ALL: 'C' }, stdio: 'pipe', detached: true });
    const out = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    const timer = setTimeout(() => settle({ status: 'broken', error: { fault: 'timed_out' } }), timeoutMs);
    let isSettled = false;
    let isClosed = false;
    const settle = (end: HelperEnd): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      // What it has started may hold its pipes open, or show a prompt that nobody waits for any more.
      if (!isClosed) killGroup(child.pid);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      resolve(end);
    };
    for (const name of ['stdout', 'stderr'] as const) {
      let length = 0;
      child[name].on('data', (part: Buffer) => {
        length += part.length;
        if (length > MAX_OUTPUT_BYTES) settle({ status: 'broken', error: { fault: 'helper_failed' } });
        else out[name].push(part);
      });
      child[name].on('error', () => undefined);
    }
    child.on('error', (error) => settle({ status: 'broken', error: startError(error) }));
    const end = (code: number | null): void => {
      if (code === null) settle({ status: 'broken', error: { fault: 'helper_failed' } });
      else settle({ status: 'ended', code, stdout: textOf(out.stdout), stderr: textOf(out.stderr) });
    };
    // A service that the helper started may keep its pipes open; what the helper itself wrote is there by then.
    child.on('exit', (code) => setTimeout(() => end(code), PIPE_GRACE_MS).unref());
    child.on('close', (code) => {
      isClosed = true;
      end(code);
    });
    // One that ends without reading what it is told says why by its exit code.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
  });
}

/** What is wrong where a helper could not be started at all. */
function startError(error: unknown): StoreError {
  const found = storeErrorOf(error);
  return found.systemCode === 'ENOENT' ? { fault: 'helper_missing' } : found;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The whole group is gone already.
  }
}

function textOf(parts: readonly Buffer[]): string {
  return Buffer.concat(parts).toString('utf8');
}
