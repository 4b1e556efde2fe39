import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CpioEntry } from '@firecrew/rootfs';
import type { TestKernel } from './kernel.ts';
import { compileStatic, PROGRAMS, runTool } from './tools.ts';

/** In load order: what a module needs comes before it. */
const MODULES = [
  ...['virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev', 'virtio_pci', 'virtio_blk', 'virtio_console'],
  ...['overlay', 'squashfs', 'libcrc32c'],
];

/** What guest-init finds in its initrd. */
export function initrdEntries(init: Buffer, kernel: TestKernel, config: string): CpioEntry[] {
  const file = (path: string, mode: number, content: Uint8Array): CpioEntry => ({ path, mode: 0o100000 | mode, content });
  const listed = [...MODULES, 'absent-here'].map((name) => `/modules/${name}.ko\n`).join('');
  return [
    file('init', 0o755, init),
    { path: 'modules', mode: 0o40755 },
    file('modules/list', 0o644, Buffer.from(listed)),
    ...MODULES.map((name) => file(`modules/${name}.ko`, 0o644, kernel.module(name))),
    { path: 'firecrew', mode: 0o40700 },
    file('firecrew/agent.json', 0o600, Buffer.from(config)),
  ];
}

/** A read-only base as squashfs: nothing in it but one file. */
export function makeBase(folder: string): string {
  const tree = join(folder, 'base');
  mkdirSync(join(tree, 'etc'), { recursive: true });
  writeFileSync(join(tree, 'etc/base-file'), 'of the base\n');
  runTool('mksquashfs', [tree, join(folder, 'base.squashfs'), '-quiet', '-no-progress', '-all-root']);
  return join(folder, 'base.squashfs');
}

/** The payload as ext4: the agent of the test, and how it is started. */
export function makePayload(folder: string, run: string, label = 'payload'): string {
  const tree = join(folder, `tree-${label}`);
  mkdirSync(tree);
  const agent = join(folder, 'agent');
  compileStatic(join(PROGRAMS, 'agent.c'), agent);
  cpSync(agent, join(tree, 'agent'));
  chmodSync(join(tree, 'agent'), 0o755);
  writeFileSync(join(tree, 'run'), run);
  return makeExt4(join(folder, `${label}.ext4`), label, 8, tree);
}

/** A fresh ext4 file system with a label. */
export function makeExt4(path: string, label: string, sizeMib: number, tree?: string): string {
  const from = tree === undefined ? [] : ['-d', tree];
  runTool('mke2fs', ['-q', '-F', '-t', 'ext4', '-m', '0', '-L', label, ...from, path, `${sizeMib}M`]);
  return path;
}
