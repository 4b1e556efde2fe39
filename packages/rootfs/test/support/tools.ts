import { spawnSync } from 'node:child_process';
import { it } from 'vitest';

const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

/** Runs a tool to its end; gives what it printed. Throws with its messages. */
export function runTool(name: string, args: readonly string[], options: { input?: Buffer; cwd?: string } = {}): Buffer {
  const { status, stdout, stderr, error } = spawnSync(name, args, {
    ...options,
    env: { ...process.env, PATH },
    maxBuffer: 512 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${error?.message ?? stderr.toString()}`);
  return stdout;
}

/** `it` where these tools are installed; else a skip that names what is missing. */
export function itWith(...names: readonly string[]): (name: string, test: () => unknown, timeoutMs?: number) => void {
  const missing = names.filter((name) => spawnSync(name, ['--version'], { env: { ...process.env, PATH } }).error !== undefined);
  if (missing.length === 0) return (name, test, timeoutMs = 30_000) => it(name, { timeout: timeoutMs }, test as () => void);
  return (name) => it.skip(`${name} (not installed: ${missing.join(', ')})`, () => undefined);
}
