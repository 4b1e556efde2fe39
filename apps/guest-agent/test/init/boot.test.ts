import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readDiskState } from '@firecrew/rootfs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { initrdEntries, makeBase, makeExt4, makePayload } from './support/images.ts';
import { findKernel, type TestKernel } from './support/kernel.ts';
import { buildInit, compiler, hasTool } from './support/tools.ts';
import { PORT, TestVm, type VmDisk } from './support/vm.ts';

/** Time for one boot and what is done in it, in `ms`: emulation on a busy machine takes ten times as long as on an idle one. */
const BOOT_TIMEOUT_MS = 120_000;
const MIB = 1024 * 1024;

const missing = [
  ...(compiler === undefined ? ['a C compiler'] : []),
  ...(hasTool('qemu-system-x86_64') ? [] : ['qemu-system-x86_64']),
  ...(hasTool('mksquashfs', '-version') ? [] : ['mksquashfs']),
  ...(hasTool('mke2fs', '-V') ? [] : ['mke2fs']),
];
const kernel: TestKernel | string = missing.length === 0 ? findKernel() : `${missing.join(', ')} missing`;
const why = typeof kernel === 'string' ? ` (not run: ${kernel})` : '';

const RUN = '/opt/firecrew/agent\nan argument\n';
const CONFIG = '{"secret":"of this VM"}\n';
const LINK = `firecrew.link=virtio:${PORT}`;
const WORDS = ['firecrew.base=serial:fc-base', 'firecrew.payload=label:payload', 'firecrew.scratch=serial:fc-scratch', LINK];

describe.skipIf(typeof kernel === 'string')(`a booted VM${why}`, { timeout: BOOT_TIMEOUT_MS }, () => {
  let folder = '';
  let init: Buffer;
  let base: VmDisk;
  let payload: VmDisk;
  let emptyScratch = '';
  let vm: TestVm | undefined;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'fc-boot-'));
    init = readFileSync(buildInit(folder));
    base = { path: makeBase(folder), readOnly: true, serial: 'fc-base' };
    payload = { path: makePayload(folder, RUN), readOnly: true };
    emptyScratch = makeExt4(join(folder, 'empty.ext4'), 'fc-scratch', 64);
  }, BOOT_TIMEOUT_MS);
  afterEach(async () => {
    await vm?.kill();
    vm = undefined;
  });
  afterAll(() => {
    if (folder !== '') rmSync(folder, { recursive: true, force: true });
  });

  const freshScratch = (name: string): VmDisk => {
    const path = join(folder, name);
    cpSync(emptyScratch, path);
    return { path, readOnly: false, serial: 'fc-scratch' };
  };
  const boot = async (words: readonly string[], disks: readonly VmDisk[]): Promise<TestVm> => {
    if (typeof kernel === 'string') throw new Error(kernel);
    vm = await TestVm.boot({ folder, kernel: kernel.image, initrd: initrdEntries(init, kernel, CONFIG), words, disks });
    return vm;
  };

  it('serves over its link, and what it wrote is rescued after it was killed', async () => {
    const scratch = freshScratch('scratch.ext4');
    const first = await boot(WORDS, [base, payload, scratch]);
    const link = await first.link();

    expect(await link.order('describe')).toMatch(
      /^pid \d+ parent 1 files 1024\/524288 socket 140600 folder 40700 argv \/opt\/firecrew\/agent an argument --config-file \/run\/firecrew\/agent.json$/,
    );
    expect(first.stages).toEqual([
      'options accepted',
      expect.stringMatching(/^modules 10 loaded, skipped: absent-here.ko$/),
      'disks base is /dev/vda (serial fc-base, squashfs)',
      'disks payload is /dev/vdb (label payload, ext4)',
      'disks scratch is /dev/vdc (serial fc-scratch, ext4)',
      'root scratch disk over the base',
      'payload on /opt/firecrew',
      'loopback up',
      expect.stringMatching(/^link \/run\/firecrew\/link.sock to \/dev\/vport\d+p\d+$/),
      expect.stringMatching(/^agent started as process \d+$/),
    ]);

    // The configuration came, and is nowhere else: not in the initrd, not on the console.
    expect(await link.order('config')).toBe(CONFIG);
    expect(await link.order('read /run/firecrew/agent.json')).toMatch(/^error: No such file/);
    expect(await link.order('read /firecrew/agent.json')).toMatch(/^error: No such file/);
    expect(first.console).not.toContain('of this VM');

    const mounts = (await link.order('read /proc/mounts')).split('\n').map((line) => line.split(' ').slice(1, 4));
    const optionsOf = (path: string, type: string): string | undefined => mounts.findLast(([at, is]) => at === path && is === type)?.[2];
    for (const [path, type] of [
      ['/', 'overlay'],
      ['/proc', 'proc'],
      ['/sys', 'sysfs'],
      ['/dev', 'devtmpfs'],
      ['/dev/pts', 'devpts'],
    ] as const) {
      expect(optionsOf(path, type), path).toMatch(/^rw/);
    }
    expect(optionsOf('/sys/fs/cgroup', 'cgroup2')).toMatch(/^rw/);
    expect(optionsOf('/opt/firecrew', 'ext4')).toMatch(/^ro,nosuid,nodev/);
    expect(await link.order('write /opt/firecrew/run other')).toBe('error: Read-only file system');
    expect(await link.order('loopback')).toBe('ok');
    expect(await link.order('read /dev/fd/0')).toBe('');

    // Orphans are taken by pid 1: the order comes back once the middle process has ended, its child ends a moment later.
    expect(await link.order('orphan')).toBe('ok');
    while ((await link.order('zombies')) !== '0') expect(link.isUp).toBe(true);

    // Its standard output is lines of the console, cut and without what a terminal would act on.
    await link.order(`say : \x1b[31mred ${'x'.repeat(600)}`);
    await link.order('say : after');
    await first.until((text) => text.includes('agent: after'));
    expect(first.console).toContain(`agent: ?[31mred ${'x'.repeat(503)}\r\n`);

    const bytes = randomBytes(2 * MIB);
    expect((await link.echo(bytes)).equals(bytes)).toBe(true);
    expect(await link.order('redial')).toBe('dialled again');

    // The host is lost and comes back: QEMU dials it again, and the agent once; that dial waits for the host.
    expect(await link.order('dials')).toBe('2');
    link.drop();
    const second = await first.link();
    expect((await second.echo(bytes.subarray(0, 100_000))).equals(bytes.subarray(0, 100_000))).toBe(true);

    expect(await second.order('dials')).toBe('3');
    expect(await second.order('read /etc/base-file')).toBe('of the base\n');
    expect(await second.order('remove /etc/base-file')).toBe('ok');
    expect(await second.order('write /kept.txt by the first VM')).toBe('ok');
    await first.kill();

    // The killed VM left a journal to replay; base and scratch as it saw them are below what the second one writes.
    const rescue = await boot([...WORDS, 'firecrew.rescue=1'], [base, payload, scratch]);
    const reader = await rescue.link();
    expect(await reader.order('read /kept.txt')).toBe('by the first VM');
    expect(rescue.stages).toContain('root memory over the base and the scratch disk to rescue');
    expect(await reader.order('read /etc/base-file')).toMatch(/^error: No such file/);
    expect(await reader.order('write /kept.txt by the second VM')).toBe('ok');
    // Asked to stop, it may end the agent before that has answered.
    reader.tell('signal 1 15');
    expect(await rescue.end()).toBe(0);
    expect(rescue.stages.slice(-2)).toEqual(['agent asked to stop', expect.stringMatching(/^agent stopped after \d+ ms$/)]);
    expect(readFileSync(scratch.path).includes('by the second VM')).toBe(false);
    expect(readFileSync(scratch.path).includes('by the first VM')).toBe(true);
  });

  it('lies on what an earlier VM left that ended in order, and changes nothing of it', async () => {
    const left = freshScratch('left.ext4');
    const first = await boot(WORDS, [base, payload, left]);
    const writer = await first.link();
    expect(await writer.order('write /kept.txt by the first VM')).toBe('ok');
    expect(await writer.order('write /other.txt by the first VM')).toBe('ok');
    expect(await writer.order('remove /etc/base-file')).toBe('ok');
    writer.tell('signal 1 15');
    expect(await first.end()).toBe(0);
    expect(first.stages.slice(-2)).toEqual([expect.stringMatching(/^agent stopped after \d+ ms$/), 'scratch sealed']);
    await first.kill();
    // Its journal is empty: no VM that has it read-only could replay one.
    expect(await readDiskState(left.path)).toBe('clean');

    const bytes = readFileSync(left.path);
    const layer: VmDisk = { ...left, readOnly: true, serial: 'fc-layer' };
    const over = freshScratch('over.ext4');
    const second = await boot([...WORDS, 'firecrew.layer=serial:fc-layer'], [base, payload, layer, over]);
    const reader = await second.link();
    expect(await reader.order('read /kept.txt')).toBe('by the first VM');
    expect(second.stages).toEqual(
      expect.arrayContaining(['disks layer is /dev/vdc (serial fc-layer, ext4)', 'root scratch disk over the base and the layer']),
    );
    expect(await reader.order('read /etc/base-file')).toMatch(/^error: No such file/);
    expect(await reader.order('remove /other.txt')).toBe('ok');
    expect(await reader.order('read /other.txt')).toMatch(/^error: No such file/);
    expect(await reader.order('read /kept.txt')).toBe('by the first VM');
    expect(await reader.order('write /own.txt by the second VM')).toBe('ok');
    await second.kill();
    expect(readFileSync(left.path).equals(bytes)).toBe(true);

    // What the second one wrote is rescued together with what it lay on.
    const rescue = await boot([...WORDS, 'firecrew.layer=serial:fc-layer', 'firecrew.rescue=1'], [base, payload, layer, over]);
    const rescuer = await rescue.link();
    expect(await rescuer.order('read /own.txt')).toBe('by the second VM');
    expect(await rescuer.order('read /kept.txt')).toBe('by the first VM');
    expect(await rescuer.order('read /other.txt')).toMatch(/^error: No such file/);
    expect(rescue.stages).toContain('root memory over the base and the layer and the scratch disk to rescue');
  });

  it.each([
    {
      what: 'its command line is not of the table',
      words: [...WORDS, 'firecrew.debug=1'],
      disks: () => [base, payload],
      last: /^failed options: an unknown key: firecrew.debug$/,
    },
    {
      what: 'its layer holds no tree of a VM',
      words: [...WORDS.map((word) => word.replace('serial:fc-scratch', 'tmpfs')), 'firecrew.layer=serial:fc-layer'],
      disks: () => [base, payload, { path: emptyScratch, readOnly: true, serial: 'fc-layer' }],
      last: /^failed layer: the layer \/dev\/vdc holds no tree$/,
    },
    {
      what: 'a disk is missing',
      words: WORDS,
      disks: () => [payload, freshScratch('s1')],
      last: /^failed disks: base: no disk has the serial fc-base; there are:( vda\(-,ext4,payload\)| vdb\(fc-scratch,ext4,fc-scratch\)){2}$/,
    },
    {
      what: 'two disks have its name',
      words: WORDS.map((word) => word.replace('serial:fc-scratch', 'tmpfs')),
      disks: () => [base, payload, { ...payload, path: copyOf(payload) }],
      last: /^failed disks: payload: 2 disks have the label payload:( vda\(fc-base,squashfs,-\)| vd[bc]\(-,ext4,payload\)){3}$/,
    },
    {
      what: 'the payload does not say how the agent is started',
      words: WORDS.map((word) => word.replace('label:payload', 'serial:fc-scratch').replace('scratch=serial:fc-scratch', 'scratch=tmpfs')),
      disks: () => [base, freshScratch('s2')],
      last: /^failed agent: \/opt\/firecrew\/run cannot be read: No such file or directory$/,
    },
    {
      what: 'the agent ends at once',
      words: WORDS.map((word) => word.replace('label:payload', 'label:ends').replace('serial:fc-scratch', 'tmpfs')),
      disks: () => [base, { path: makePayload(folder, '/opt/firecrew/agent\n', 'ends'), readOnly: true }],
      last: /^failed agent: ended with status 27 after \d+ ms$/,
    },
  ])('ends, and names the stage, when $what', async ({ words, disks, last }) => {
    const failing = await boot(words, disks());
    expect(await failing.end()).toBe(0);
    expect(failing.stages.at(-1)).toMatch(last);
    expect(failing.stages.filter((line) => line.startsWith('failed')).length).toBe(1);
  });

  function copyOf(disk: VmDisk): string {
    const path = `${disk.path}.copy`;
    cpSync(disk.path, path);
    return path;
  }
});
