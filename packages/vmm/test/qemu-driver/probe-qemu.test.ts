import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BootFiles } from '@firecrew/rootfs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { probeQemu, type QemuProbe } from '../../src/qemu-driver/probe-qemu.ts';

describe('a probe of QEMU', () => {
  let folder: string;
  let asked: QemuProbe;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-probe-'));
    // cast: what of the files a probe reads
    const files = { kernel: { path: '/k' }, initrd: { path: '/i' }, close: async () => undefined } as unknown as BootFiles;
    asked = { program: join(folder, 'qemu'), accelerator: 'kvm', machine: 'q35', openFiles: async () => files, boots: true };
  });
  afterEach(async () => await rm(folder, { recursive: true, force: true }));

  /** An emulator that keeps its arguments and says this on the console of what it boots. */
  async function emulator(console: string): Promise<void> {
    const script = `#!/bin/sh\nif [ "$1" = --version ]; then echo "QEMU emulator version 9.1.0"; exit; fi\necho "$@" > ${folder}/args\necho "${console}"\n`;
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
    await expect(readFile(join(folder, 'args'))).rejects.toThrow('ENOENT');
  });

  it('does not boot where another process of the host has done so', async () => {
    await emulator('no bootable device');
    expect(await probeQemu({ ...asked, boots: false })).toMatchObject({ available: true });
    await expect(readFile(join(folder, 'args'))).rejects.toThrow('ENOENT');
  });

  it('says that the emulator does not run', async () => {
    expect(await probeQemu(asked)).toMatchObject({ available: false, detail: expect.stringContaining(`${asked.program} does not run`) });
  });
});
