import { readFileSync } from 'node:fs';
import { chmod, type FileHandle, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BootFiles } from '@firecrew/rootfs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { probeQemu, type QemuProbe } from '../../src/qemu-driver/probe-qemu.ts';

const asRoot = it.skipIf(process.getuid?.() !== 0);
const needsRoot = process.getuid?.() === 0 ? '' : ' (not run: this user may not start processes as others)';
const PROBE_UID = 4_000_000 + process.pid;

describe('a probe of QEMU', () => {
  let folder: string;
  let asked: QemuProbe;
  let handles: FileHandle[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-probe-'));
    await chmod(folder, 0o711);
    handles = await Promise.all(['kernel', 'initrd'].map((name) => opened(name)));
    const [kernel, initrd] = handles;
    // cast: what of the files a probe reads
    const files = { kernel: { handle: kernel }, initrd: { handle: initrd }, close: async () => undefined } as unknown as BootFiles;
    asked = { program: join(folder, 'qemu'), accelerator: 'kvm', machine: 'q35', openFiles: async () => files, boots: true };
  });
  afterEach(async () => {
    for (const handle of handles) await handle.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** A file of the store that holds its own name. */
  async function opened(name: string): Promise<FileHandle> {
    await writeFile(join(folder, name), name, { mode: 0o444 });
    return await open(join(folder, name));
  }

  /** An emulator that keeps its arguments and says this on the console of what it boots. */
  async function emulator(console: string): Promise<void> {
    const notes = ['args', 'uid', 'files'].map((name) => join(folder, name));
    const [args, uid, files] = notes;
    const script = `#!/bin/sh
if [ "$1" = --version ]; then echo "QEMU emulator version 9.1.0"; exit; fi
echo "$@" > ${args}; id -u > ${uid}; cat /proc/self/fd/3 /proc/self/fd/4 > ${files}
echo "${console}"
`;
    for (const note of notes) {
      await writeFile(note, '');
      await chmod(note, 0o666);
    }
    await writeFile(asked.program, script);
    await chmod(asked.program, 0o755);
  }

  it.each(['q35', 'microvm'] as const)('boots the machine that VMs run on: %s', async (machine) => {
    await emulator('firecrew-init: 5 ms options');
    expect(await probeQemu({ ...asked, machine })).toMatchObject({ available: true, detail: expect.stringContaining('probe boot') });
    expect(await readFile(join(folder, 'args'), 'utf8')).toMatch(new RegExp(`-machine ${machine},\\S* -accel kvm -cpu host `));
  });

  it('says which machine does not come as far as guest-init', async () => {
    await emulator('no bootable device');
    expect(await probeQemu(asked)).toMatchObject({
      available: false,
      detail: expect.stringMatching(/QEMU 9\.1\.0 does not boot a q35 machine with kvm: no bootable device/),
    });
  });

  it('boots no emulated microvm, whose kernel would wait for a clock for ever', async () => {
    await emulator('firecrew-init: 5 ms options');
    const found = await probeQemu({ ...asked, machine: 'microvm', accelerator: 'tcg' });
    expect(found).toMatchObject({ available: false, detail: expect.stringContaining('use q35, or kvm') });
    expect(await readFile(join(folder, 'args'), 'utf8')).toBe('');
  });

  it('does not boot where another process of the host has done so', async () => {
    await emulator('no bootable device');
    expect(await probeQemu({ ...asked, boots: false })).toMatchObject({ available: true });
    expect(await readFile(join(folder, 'args'), 'utf8')).toBe('');
  });

  it('gives kernel and initrd as descriptors, so that no way to their folders is needed', async () => {
    await emulator('firecrew-init: 5 ms options');
    expect(await probeQemu(asked)).toMatchObject({ available: true });
    expect(await readFile(join(folder, 'args'), 'utf8')).toContain('-kernel /proc/self/fd/3 -initrd /proc/self/fd/4');
    expect(await readFile(join(folder, 'files'), 'utf8')).toBe('kernelinitrd');
  });

  asRoot(`boots as a user that is lent to it, and gives that back after the end${needsRoot}`, async () => {
    await emulator('firecrew-init: 5 ms options');
    const held: number[] = [];
    let released = '';
    const take = async (id: string) => {
      held.push(PROBE_UID);
      const release = (): void => {
        held.pop();
        released = readFileSync(join(folder, 'uid'), 'utf8').trim();
      };
      expect(id).toBe('probe');
      return { owner: { uid: PROBE_UID, gid: PROBE_UID }, release };
    };
    expect(await probeQemu({ ...asked, users: { take } })).toMatchObject({ available: true });
    expect(held).toEqual([]);
    expect(released).toBe(String(PROBE_UID));
  });

  it('boots nothing, and says so, where no user is left for it', async () => {
    await emulator('firecrew-init: 5 ms options');
    const take = () => Promise.reject(new Error('all 3 user ids of this node are in use'));
    const found = await probeQemu({ ...asked, users: { take } });
    expect(found).toMatchObject({ available: false, detail: expect.stringContaining('all 3 user ids of this node are in use') });
    expect(await readFile(join(folder, 'args'), 'utf8')).toBe('');
  });

  it('says that the emulator does not run', async () => {
    expect(await probeQemu(asked)).toMatchObject({ available: false, detail: expect.stringContaining(`${asked.program} does not run`) });
  });
});
