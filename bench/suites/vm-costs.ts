import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@firecrew/base';
import type { BootFiles } from '@firecrew/rootfs';
import { Installation } from '@firecrew/system-tests/installation';
import { makeRepository } from '@firecrew/system-tests/repository';
import { type BootSpec, findMarked, QemuDriver } from '@firecrew/vmm';
import { residentMib } from '../support/processes.ts';
import { type BenchRow, measured, notMeasured } from '../support/row.ts';

const ROUNDS = 3;
const AGENT_MS = 180_000;
const LOOK_MS = 100;
/** Lines of guest-init: its disks are found, and its root is mounted. */
const FOUND = /firecrew-init: (\d+) ms disks scratch is /;
const MOUNTED = /firecrew-init: (\d+) ms root scratch disk over the base/;

/**
 * Time in which a guest mounts its image, its scratch disk and the overlay of both, by its own clock, which guest-init writes on the console.
 * The payload is no file system: the VM ends after that, and the last lines of its console are in the error.
 */
export async function mountRows(open: () => Promise<BootFiles>, specOf: (name: string) => BootSpec): Promise<BenchRow[]> {
  const name = 'vm: image, scratch and overlay mounted in the guest';
  const openFiles = async (): Promise<BootFiles> => {
    const files = await open();
    return { ...files, payload: files.kernel };
  };
  const driver = new QemuDriver({ accelerator: 'tcg', openFiles });
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const said = await driver.boot(specOf(`m${round}`)).then(() => 'it came up', messageOf);
    const [found, mounted] = [FOUND, MOUNTED].map((line) => line.exec(said)?.[1]);
    if (found === undefined || mounted === undefined) return [notMeasured(name, 'ms', said.slice(-200))];
    times.push(Number(mounted) - Number(found));
  }
  return [measured(name, Math.min(...times), 'ms')];
}

/** What one VM of an installation costs its host while its agent waits: its shim, and its QEMU beside the memory of the guest. */
export async function hostRows(storeRoot: string): Promise<BenchRow[]> {
  const installation = await Installation.start({ bubblewrap: 'auto', node: { qemu: { accelerator: 'tcg', store: storeRoot } } });
  try {
    const repository = await makeRepository(join(installation.home, 'scratch', 'costs'), { 'a.txt': 'a\n' });
    const agent = 'say up; wait_for go; echo b > a.txt';
    const { id } = await installation.startMission({ repository, agent, extra: { driver: 'qemu' } });
    for (const from = performance.now(); installation.witness.saw('up').length === 0; await delay(LOOK_MS))
      if (performance.now() - from > AGENT_MS) throw new Error('the agent did not start');
    const attempt = await installation.attempt(id);
    const [shim, qemu] = [await installation.shimPid(attempt), qemuOf(attempt.marker)];
    const { allMib, guestMib } = memoryOf(qemu);
    const rows = [
      measured('vm: memory of a shim', residentMib(shim), 'MiB'),
      measured(
        'vm: memory of its QEMU beside that of the guest',
        allMib - guestMib,
        'MiB',
        undefined,
        `with ${guestMib.toFixed(0)} MiB of the guest`,
      ),
    ];
    installation.witness.open('go');
    await installation.ended(id, AGENT_MS);
    return rows;
  } finally {
    await installation.stop();
  }
}

function qemuOf(marker: string): number {
  const pid = findMarked(marker).find((one) => readFileSync(`/proc/${one}/comm`, 'utf8').startsWith('qemu-system'));
  if (pid === undefined) throw new Error('there is no QEMU of the attempt');
  return pid;
}

/** Resident memory in MiB, as a whole and of the largest mapping, which is the guest's. */
function memoryOf(pid: number): { readonly allMib: number; readonly guestMib: number } {
  const mappings = [...readFileSync(`/proc/${pid}/smaps`, 'utf8').matchAll(/^Size: +(\d+) kB\n[\s\S]*?^Rss: +(\d+) kB$/gm)].map(
    ([, size, resident]) => ({ size: Number(size), resident: Number(resident) }),
  );
  const guest = mappings.reduce((largest, one) => (one.size > largest.size ? one : largest), { size: 0, resident: 0 });
  return { allMib: residentMib(pid), guestMib: guest.resident / 1024 };
}
