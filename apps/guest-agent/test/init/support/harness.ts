import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { hasTool, PROGRAMS, runTool, SOURCES } from './tools.ts';

/** The sources that decide; the others act on the machine and are shown by real boots. */
const PURE = ['options.c', 'run-file.c', 'superblock.c', 'relay.c', 'host-link.c', 'files.c'];

/** A compiler for programs that run here; sanitizers want the system's own C library. */
const compiler = ['cc', 'gcc', 'clang'].find((name) => hasTool(name));
/** Why the tests with this program cannot run, or undefined. */
export const noHarness = compiler === undefined ? 'no C compiler is installed (cc, gcc or clang)' : undefined;

/** Builds the harness into `folder`, with sanitizers where the compiler has them; gives its path. */
export function buildHarness(folder: string): string {
  const missing = PURE.filter((name) => !readdirSync(SOURCES).includes(name));
  if (missing.length > 0) throw new Error(`these sources are gone: ${missing.join(', ')}`);
  const target = join(folder, 'harness');
  const flags = [
    '-std=c11',
    '-D_GNU_SOURCE',
    '-g',
    '-O1',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-Wl,--wrap=read,--wrap=write',
    `-I${SOURCES}`,
    '-o',
    target,
  ];
  const sources = [join(PROGRAMS, 'harness.c'), ...PURE.map((name) => join(SOURCES, name))];
  try {
    runTool(compiler ?? 'cc', ['-fsanitize=address,undefined', '-fno-sanitize-recover=all', ...flags, ...sources]);
  } catch {
    runTool(compiler ?? 'cc', [...flags, ...sources]);
  }
  return target;
}

const env = { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' };

/** Runs one command of the harness; gives the lines that it printed. */
export function ask(harness: string, args: readonly string[], input: string | Uint8Array = ''): string[] {
  const { status, stdout, stderr, signal } = spawnSync(harness, args, { input, env, maxBuffer: 16 * 1024 * 1024 });
  if (status !== 0) throw new Error(`the harness ended with ${status ?? signal}: ${stderr.toString('latin1').slice(0, 2000)}`);
  return stdout.toString('latin1').split('\n').slice(0, -1);
}

/** A relay that runs until `stop`. */
export interface RunningRelay {
  readonly pid: number;
  /** Turns of its loop so far, in thousands. */
  readonly thousands: () => number;
  stop(): Promise<void>;
}

/** Starts a relay from `socketPath` to `link`; settles when it listens. */
export async function startRelay(harness: string, link: string, socketPath: string): Promise<RunningRelay> {
  const child: ChildProcess = spawn(harness, ['relay', link, socketPath], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const listening = new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (part: Buffer) => {
      said += part.toString();
      if (said.includes('listening\n')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the relay ended with ${code}: ${said}`)));
  });
  await listening;
  return {
    pid: child.pid ?? 0,
    thousands: () => said.split('turns ').length - 1,
    stop: async () => {
      // Ended already: a sanitizer or a fault ended it, and the test has to fail.
      const early = child.exitCode ?? child.signalCode;
      if (early !== null) throw new Error(`the relay ended with ${early} in the middle of the test`);
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
