import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@firecrew/base';
import * as z from 'zod';
import { openExistingHome } from '../home/open-home.ts';
import { readSettings } from '../settings/read-settings.ts';
import { demandEntry, locateApps } from '../supervisor/locate-apps.ts';
import { nodeConfigOf } from '../supervisor/service-config.ts';
import { type CommandContext, homePathOf } from './context.ts';
import type { Finding } from './doctor.ts';

/** Time for one VM of each driver, in `ms`: emulated on a busy machine each takes half a minute. */
export const SELFTEST_TIMEOUT_MS = 300_000;
const OUTPUT_BYTES = 1_048_576;

const resultsSchema = z.array(z.object({ driver: z.string(), ok: z.boolean(), detail: z.string() })).max(16);

/** Time that a self-test has to end its VM once it was told to, in `ms`. */
const STOP_GRACE_MS = 30_000;

/**
 * Boots one VM with each driver that the settings have, runs a command in it, and looks whether it leaves anything. When it is aborted it
 * waits until the VM is gone, and rejects with the reason.
 */
export async function selftestVms(context: CommandContext, signal: AbortSignal): Promise<Finding[]> {
  const check = 'vm';
  try {
    const home = openExistingHome(homePathOf(context));
    if (home === undefined) {
      return [{ check, state: 'problem', detail: 'there is no home yet, and so nothing to boot', fix: 'firecrew image --help' }];
    }
    const config = nodeConfigOf(home, readSettings(home.paths, context.env, {}));
    // Not the file that a running node agent was started with.
    const folder = mkdtempSync(join(home.paths.run, 'selftest-'));
    try {
      const file = join(folder, 'node-config.json');
      writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
      return findingsOf(resultsSchema.parse(JSON.parse(await runSelftest(file, signal))));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  } catch (error) {
    signal.throwIfAborted();
    return [{ check, state: 'problem', detail: `the self-test could not be run: ${messageOf(error)}`, fix: null }];
  }
}

/** One finding for each driver; none is a problem too, for who asked for a test of it. */
export function findingsOf(results: z.infer<typeof resultsSchema>): Finding[] {
  if (results.length === 0) {
    const fix = 'export FIRECREW_QEMU_ACCELERATOR=kvm';
    return [{ check: 'vm', state: 'problem', detail: 'the settings name no driver of microVMs (docs/cli.md, Settings)', fix }];
  }
  return results.map(({ driver, ok, detail }) => ({ check: `vm ${driver}`, state: ok ? 'ok' : 'problem', detail, fix: null }));
}

function runSelftest(config: string, signal: AbortSignal): Promise<string> {
  const args = [demandEntry(locateApps().nodeAgent), '--config', config, '--vm-selftest'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (part: Buffer) => {
      output[name] = (output[name] + part.toString()).slice(-OUTPUT_BYTES);
    });
  let late: NodeJS.Timeout | undefined;
  // It ends its VM by itself; killed at once it would leave it running.
  const stop = (): void => {
    child.kill('SIGTERM');
    late ??= setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS);
  };
  const timer = setTimeout(stop, SELFTEST_TIMEOUT_MS);
  signal.addEventListener('abort', stop);
  return new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, name) => {
      if (code === 0) resolve(output.stdout);
      else reject(new Error(output.stderr.trim().split('\n').at(-1) || `it ended with ${name ?? `status ${code}`}`));
    });
  }).finally(() => {
    clearTimeout(timer);
    clearTimeout(late);
    signal.removeEventListener('abort', stop);
  });
}
