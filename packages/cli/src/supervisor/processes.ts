import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { identifyProcess, isAlive, type ProcessIdentity, signalProcess } from '@firecrew/base';
import type { Account } from './server-account.ts';

/** A log is moved aside at the start of its writer when it is larger than this, in bytes. */
export const LOG_ROTATE_BYTES = 4 * 1024 * 1024;
/** Older logs that are kept beside the present one. */
export const LOG_KEEP = 3;
const POLL_MS = 50;

/** A process to start in a session of its own. */
export interface DetachedProcess {
  /** Node, where it is another one than that of this process. */
  readonly node?: string;
  /** Whom it runs as, without any further group; this account where it is left out. */
  readonly account?: Account | undefined;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts Node on `args`; it outlives this process, and its output goes to a file. Undefined when it ended at once. */
export function startDetached(what: DetachedProcess): ProcessIdentity | undefined {
  rotateLog(what.logFile);
  const log = openSync(what.logFile, 'a', 0o600);
  try {
    const child = spawn(what.node ?? process.execPath, [...what.args], {
      cwd: '/',
      env: what.env,
      detached: true,
      stdio: ['ignore', log, log],
      ...what.account,
    });
    child.once('error', () => undefined);
    child.unref();
    return child.pid === undefined ? undefined : identifyProcess(child.pid);
  } finally {
    closeSync(log);
  }
}

/** Moves a large log aside: `.1` is the newest of {@link LOG_KEEP}. Only for a log that nobody writes to. */
export function rotateLog(file: string): void {
  if (!existsSync(file) || statSync(file).size < LOG_ROTATE_BYTES) return;
  for (let age = LOG_KEEP - 1; age >= 1; age -= 1) if (existsSync(`${file}.${age}`)) renameSync(`${file}.${age}`, `${file}.${age + 1}`);
  renameSync(file, `${file}.1`);
}

/** The living process of the account `uid` that was started with `--config FILE`: its supervisor may have died before it wrote the pid down. */
export function findByConfig(file: string, uid: number | undefined): ProcessIdentity | undefined {
  for (const name of readdirSync('/proc')) {
    if (!/^[1-9][0-9]*$/.test(name)) continue;
    const args = readArguments(name);
    const at = args.indexOf('--config');
    if (at !== -1 && args[at + 1] === file && statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid === uid) {
      const identity = identifyProcess(Number(name));
      if (identity !== undefined) return identity;
    }
  }
  return undefined;
}

function readArguments(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Signals one after the other, each with its term, until the process is gone; false when it is still there. */
export async function stopProcess(identity: ProcessIdentity, steps: readonly (readonly [NodeJS.Signals, number])[]): Promise<boolean> {
  for (const [signal, waitMs] of steps) {
    signalProcess(identity, signal);
    if (await waitUntil(() => !isAlive(identity), waitMs)) return true;
  }
  return !isAlive(identity);
}

/** Looks again and again until `condition` holds; false when it did not within `ms`. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
  const end = performance.now() + ms;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() >= end) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** What a child of the supervisor may know of the caller's environment: no credential of the caller goes into a long-lived process. */
const PASSED_ON =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|XDG_.*|FIRECREW_(PG_BIN|MIGRATIONS))$/;

/** The environment of a long-lived process. */
export function serviceEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined && PASSED_ON.test(name)) kept[name] = value;
  return { ...kept, ...more };
}
