import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createScratch, findBootArtifacts, openBootFiles } from '@firecrew/rootfs';
import { hostileVmStore } from '@firecrew/system-tests/guest-programs';
import { bootHostilePair } from '@firecrew/system-tests/hostile-pair';
import { testVmStore } from '@firecrew/system-tests/vm-store';
import { type BootSpec, getTree, putTree, QemuDriver, runExec, type Vm } from '@firecrew/vmm';
import { packTree, unpackTree } from '@firecrew/workspace';
import { residentMib, watchGrowth } from '../support/processes.ts';
import { type BenchRow, measured, notMeasured } from '../support/row.ts';
import { median, timed } from '../support/timing.ts';
import { hostRows, mountRows } from './vm-costs.ts';

const ROUNDS = 3;
const GUEST_MIB = 512;
const SCRATCH_MIB = 10_240;
/** A tree as a small project has it: 500 files, 10 MB. */
const FILES = 500;
const FILE_BYTES = 20_000;
const PEER_TIMEOUT_MS = 120_000;
/** Execs of an honest VM, and streams that a hostile one opens and resets meanwhile. */
const EXECS = 20;
const FLOOD = 100_000;
const EXEC_TIMEOUT_MS = 60_000;
const LOOK_MS = 10;

/** A VM under emulation, against the same emulator that boots the same kernel to a pid 1 which gives up at once. */
export async function vmSuite(): Promise<BenchRow[]> {
  const store = await testVmStore();
  if ('missing' in store) return [notMeasured('vm', '', store.missing)];
  const artifacts = await findBootArtifacts(store.root);
  const folder = await mkdtemp(join(tmpdir(), 'fcbv-'));
  const driver = new QemuDriver({ accelerator: 'tcg', openFiles: () => openBootFiles(store.root, artifacts) });
  try {
    const files = await openBootFiles(store.root, artifacts);
    const [links, boots, peers, opens, scratches]: [number[], number[], number[], number[], number[]] = [[], [], [], [], []];
    const rows: BenchRow[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      peers.push(await timed(() => bootToPidOne(files.kernel.path, files.initrd.path)));
      opens.push(await timed(async () => await (await openBootFiles(store.root, artifacts)).close()));
      const scratch = join(folder, `scratch-${round}`);
      scratches.push(await timed(() => createScratch({ path: scratch, sizeMib: SCRATCH_MIB })));
      await rm(scratch);
      let vm: Vm | undefined;
      const from = performance.now();
      const onLinkUp = () => void links.push(performance.now() - from);
      boots.push(
        await timed(async () => {
          vm = await driver.boot({ ...specOf(join(folder, `v${round}`)), onLinkUp });
        }),
      );
      if (vm !== undefined) {
        if (round === 0) rows.push(...(await insideRows(vm, folder)));
        await vm.destroy();
      }
    }
    await files.close();
    const [link, boot, peer] = [Math.min(...links), Math.min(...boots), Math.min(...peers)];
    const noteOf = (ms: number): string => `${ms.toFixed(0)} ms; empty ${peer.toFixed(0)} ms`;
    return [
      measured('vm: boot to the link, time of an empty boot', link / peer, 'x', { atMost: 2 }, noteOf(link)),
      measured('vm: boot to the first answer, time of an empty boot', boot / peer, 'x', undefined, noteOf(boot)),
      measured('vm: reading what it boots from against its digests', Math.min(...opens), 'ms'),
      measured('vm: a scratch disk of 10 GiB', Math.min(...scratches), 'ms'),
      ...(await mountRows(
        () => openBootFiles(store.root, artifacts),
        (name) => specOf(join(folder, name)),
      )),
      ...rows,
      ...(await hostRows(store.root)),
      ...(await attackRows(store.root, folder)),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function insideRows(vm: Vm, folder: string): Promise<BenchRow[]> {
  const [pid = 0] = await vm.pids();
  const tree = join(folder, 'tree');
  await mkdir(tree);
  for (let index = 0; index < FILES; index += 1) await writeFile(join(tree, `file-${index}`), randomBytes(FILE_BYTES));
  const session = await vm.session();
  const megabytes = (FILES * FILE_BYTES) / 1e6;
  const into = await timed(() => putTree(session, vm.guestPaths.workspace, packTree(tree).chunks));
  const out = await timed(async () => {
    const { archive, trailer } = await getTree(session, randomUUID(), vm.guestPaths.workspace);
    await unpackTree(archive, join(folder, 'back'), { proof: trailer });
  });
  return [
    measured('vm: workspace in', megabytes / (into / 1000), 'MB/s', undefined, `${FILES} files, ${into.toFixed(0)} ms`),
    measured('vm: workspace out', megabytes / (out / 1000), 'MB/s', undefined, `${out.toFixed(0)} ms`),
    measured('vm: memory of its VMM', residentMib(pid), 'MiB', undefined, `a guest of ${GUEST_MIB} MiB`),
  ];
}

/** An exec in a VM while the guest of another one, of the same host process, floods it with streams; against one in peace. */
async function attackRows(honest: string, folder: string): Promise<BenchRow[]> {
  const name = 'vm: exec while another VM attacks, time of one in peace';
  const store = await hostileVmStore();
  if ('missing' in store) return [notMeasured(name, 'x', store.missing)];
  const pair = await bootHostilePair(folder, { hostile: store.root, honest }, undefined);
  try {
    await execTimes(pair.honest);
    const peace = median(await execTimes(pair.honest));
    const growth = watchGrowth('self');
    const from = pair.opened();
    const { answer } = await pair.order('flood', String(FLOOD));
    await answer;
    while (pair.opened() === from) await delay(LOOK_MS);
    const attacked = median(await execTimes(pair.honest));
    const streams = pair.opened() - from;
    const grown = growth.stop();
    if (streams === FLOOD) return [notMeasured(name, 'x', `the attack was over: ${streams} streams`)];
    return [
      measured(
        name,
        attacked / peace,
        'x',
        undefined,
        `median ${attacked.toFixed(0)} ms, in peace ${peace.toFixed(0)} ms; ${streams} streams`,
      ),
      measured('vm: growth of the host process under attack', grown, 'MiB'),
    ];
  } finally {
    await pair.close();
  }
}

async function execTimes(vm: Vm): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < EXECS; round += 1) {
    const exec = { id: randomUUID(), argv: ['/bin/true'], cwd: '/', timeoutMs: EXEC_TIMEOUT_MS };
    times.push(await timed(() => runExec(vm, exec)));
  }
  return times;
}

function specOf(folder: string): BootSpec {
  return {
    vmId: 'vm-bench',
    folder,
    guestAgent: { node: '/unused', bundle: '/unused' },
    bindPaths: [],
    path: '/bin',
    caBundle: null,
    limits: { memoryMib: GUEST_MIB, diskMib: 1024 },
    allowUnisolated: false,
    attemptMarker: randomUUID(),
    onStream: () => undefined,
    onRefused: () => undefined,
  };
}

/** From the start of QEMU to its end; guest-init finds no configuration in the shared initrd and resets. */
async function bootToPidOne(kernel: string, initrd: string): Promise<void> {
  const child = spawn(
    'qemu-system-x86_64',
    [
      ...[
        '-nodefaults',
        '-no-user-config',
        '-display',
        'none',
        '-nic',
        'none',
        '-no-reboot',
        '-cpu',
        'max,la57=off',
        '-m',
        `${GUEST_MIB}M`,
      ],
      ...['-machine', 'q35,accel=tcg,smm=off,hpet=off,usb=off,vmport=off,sata=off,smbus=off,graphics=off'],
      ...[
        '-kernel',
        kernel,
        '-initrd',
        initrd,
        '-append',
        'console=ttyS0 quiet panic=-1 reboot=k,force no_timer_check',
        '-serial',
        'stdio',
      ],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], timeout: PEER_TIMEOUT_MS, killSignal: 'SIGKILL' },
  );
  let said = '';
  child.stderr.on('data', (part: Buffer) => {
    said = (said + part.toString()).slice(-500);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`QEMU ended with ${code}: ${said}`);
}
