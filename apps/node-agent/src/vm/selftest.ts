import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { messageOf } from '@firecrew/base';
import { type BootSpec, type Driver, followExec, killMarked, refuseStream, runExec, type Vm } from '@firecrew/vmm';

/** Time for the command in the VM, in `ms`; emulation is slow. */
export const SELFTEST_COMMAND_MS = 60_000;
/** Period of the look at an abort, in `ms`. */
const WATCH_EVERY_MS = 100;
/** Random bytes show that the guest's generator is ready, the sum that a shell runs, the list that there is no network card. */
const COMMAND = 'head -c 32 /dev/random | wc -c; echo $((6 * 7)); tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "';
const EXPECTED = '32\n42\nlo\n';

/** What the self-test of one driver found; `detail` is for a person. */
export interface SelftestResult {
  readonly driver: Driver['name'];
  readonly ok: boolean;
  readonly detail: string;
}

/** What a VM of the self-test is made of beside what its driver knows. */
export type SelftestSpec = Omit<BootSpec, 'onStream' | 'onRefused'>;

/** Boots one VM, runs a command in it, destroys it, and looks whether anything is left. An abort ends the VM. Never rejects. */
export async function selftestDriver(
  driver: Driver,
  spec: SelftestSpec,
  clock: () => number,
  signal: AbortSignal = new AbortController().signal,
): Promise<SelftestResult> {
  const result = (ok: boolean, detail: string): SelftestResult => ({ driver: driver.name, ok, detail });
  let vm: Vm | undefined;
  const watch = endWhenAborted(spec.attemptMarker, signal);
  try {
    const probe = await driver.probe();
    if (!probe.available) return result(false, probe.detail);
    const from = clock();
    vm = await driver.boot({
      ...spec,
      onStream: (stream) => refuseStream(stream, 'no_route', 'a self-test has no way out'),
      onRefused: () => undefined,
    });
    const bootedMs = Math.round(clock() - from);
    const output = await runCommand(vm);
    if (output !== EXPECTED)
      return result(false, `${probe.detail}; its VM answered ${JSON.stringify(output.slice(0, 200))}, not ${JSON.stringify(EXPECTED)}`);
    const left = await leftOf(vm, spec);
    if (left.length > 0) return result(false, `${probe.detail}; its VM ran, and left ${left.join(', ')}`);
    return result(true, `${probe.detail}; a VM was up after ${bootedMs} ms, ran a command, had no network card, and left nothing`);
  } catch (error) {
    return result(false, messageOf(error));
  } finally {
    await vm?.destroy();
    await watch.stop();
  }
}

/**
 * Kills what carries the marker, again and again until `stop`: an abort in the middle of a boot has nothing else to hold on to, and the boot
 * then removes what it has made.
 */
function endWhenAborted(marker: string, signal: AbortSignal): { stop(): Promise<void> } {
  let pass: Promise<unknown> | undefined;
  const timer = setInterval(() => {
    if (!signal.aborted || pass !== undefined) return;
    pass = killMarked(marker).finally(() => {
      pass = undefined;
    });
  }, WATCH_EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await pass;
    },
  };
}

async function runCommand(vm: Vm): Promise<string> {
  const exec = { id: 'selftest', argv: ['/bin/sh', '-c', COMMAND], cwd: '/', timeoutMs: SELFTEST_COMMAND_MS };
  await runExec(vm, exec);
  return await text(await followExec(await vm.session(), exec.id, 0));
}

async function leftOf(vm: Vm, { folder }: SelftestSpec): Promise<string[]> {
  const { left } = await vm.destroy();
  const processes = (await vm.pids()).map((pid) => `process ${pid}`);
  return [...new Set([...left, ...processes, ...(existsSync(folder) ? [folder] : [])])];
}
