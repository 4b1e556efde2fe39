import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const REPOSITORY = fileURLToPath(new URL('../../../../..', import.meta.url));
export const SOURCES = fileURLToPath(new URL('../../../init', import.meta.url));
export const PROGRAMS = fileURLToPath(new URL('../programs', import.meta.url));

/** Tools of the system's administrator are in nobody else's PATH. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

/** Runs a tool to its end; gives what it printed. Throws with its messages. */
export function runTool(name: string, args: readonly string[], options: { cwd?: string; timeoutMs?: number } = {}): string {
  const { status, stdout, stderr, error } = spawnSync(name, args, {
    encoding: 'utf8',
    cwd: options.cwd,
    timeout: options.timeoutMs ?? 60_000,
    env: { ...process.env, PATH },
    maxBuffer: 16 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${error?.message ?? stderr}`);
  return stdout;
}

/** Whether a tool can be started. */
export function hasTool(name: string, version = '--version'): boolean {
  return spawnSync(name, [version], { env: { ...process.env, PATH } }).error === undefined;
}

/** The C compiler that `tools/build-init.mjs` finds as well. */
export const compiler = ['musl-gcc', 'cc', 'gcc', 'clang'].find((name) => spawnSync(name, ['--version']).status === 0);

/** Compiles a small static program for a guest. */
export function compileStatic(source: string, target: string): void {
  runTool(compiler ?? 'cc', ['-std=gnu11', '-Wall', '-Wextra', '-Os', '-static', '-s', '-o', target, source], { cwd: dirname(source) });
}

/** Builds guest-init into `folder`; gives its path. */
export function buildInit(folder: string): string {
  runTool(process.execPath, ['tools/build-init.mjs', folder], { cwd: REPOSITORY });
  return `${folder}/init`;
}
