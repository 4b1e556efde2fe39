import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@firecrew/base';
import { type NodeVms, nodeVmsSchema } from '@firecrew/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listVms } from '../../src/agent/list-vms.ts';
import { readVmFolderName, vmFolderName, vmName } from '../../src/turn-folder/vm-folder-name.ts';
import { turnSpec } from '../shim/turn-spec.ts';

let turns: string;
beforeEach(async () => {
  turns = await mkdtemp(join(tmpdir(), 'firecrew-vms-'));
});
afterEach(() => rm(turns, { recursive: true, force: true }));

const turnId = newId('turn');
const spec = turnSpec({ turnId, attempt: 2, driver: 'qemu', demand: { memoryMib: 1024, diskMib: 2048, vcpus: 1 } });
const demand = { driver: 'qemu', memoryMib: 1024, diskMib: 2048 };
const list = async (known = true): Promise<NodeVms> =>
  nodeVmsSchema.parse(await listVms(turns, (folder) => (known && folder === `${turnId}.2` ? spec : undefined)));
const make = async (...path: string[]) => mkdir(join(turns, ...path), { recursive: true });

describe('the VMs that a node finds', () => {
  it('are those that have a folder in that of a turn, each with what it is for and what it was given', async () => {
    for (const name of ['v1a', 'v1v', 'v2al', 'inputs', 'v', 'vx', 'v1a2']) await make(`${turnId}.2`, name);
    await make(`${newId('turn')}.x`, 'v1a');
    await make('elsewhere.1', 'v1a');
    await writeFile(join(turns, `${turnId}.2`, 'v1v', 'rescue-initrd'), '');
    const vms = await list();
    if (vms.status !== 'known') throw new Error(vms.error);
    const key = { turnId, attempt: 2, demand };
    expect(vms.vms.sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      { ...key, name: '1a', kind: 'agent' },
      { ...key, name: '1v', kind: 'rescue' },
      { ...key, name: '2al', kind: 'layer' },
    ]);
  });

  it('count without a size where the turn is not understood, and are none where there are none', async () => {
    expect(await list(false)).toEqual({ status: 'known', vms: [] });
    await make(`${turnId}.2`, 'v1a');
    await writeFile(join(turns, `${turnId}.2`, 'spec.json'), '{');
    expect(await list(false)).toEqual({ status: 'known', vms: [{ turnId, attempt: 2, name: '1a', kind: 'agent', demand: null }] });
  });

  it('are unknown, and never none, where a folder cannot be read', async () => {
    await symlink(`${turnId}.2`, join(turns, `${turnId}.2`));
    expect(await list()).toMatchObject({ status: 'unknown', error: expect.stringContaining('ELOOP') });
    await rm(join(turns, `${turnId}.2`));
    expect(await list()).toEqual({ status: 'known', vms: [] });
    await rm(turns, { recursive: true });
    expect(await list()).toMatchObject({ status: 'unknown', error: expect.stringContaining('ENOENT') });
  });
});

describe('the name of a VM within its attempt', () => {
  it.each([
    [1, 'agent', false, 'agent'],
    [3, 'verify', false, 'check'],
    [12, 'agent', true, 'layer'],
  ] as const)('of round %i for %s is read back as it was made', (round, purpose, makesLayer, kind) => {
    const name = vmName(round, purpose, makesLayer);
    expect(readVmFolderName(vmFolderName(name))).toEqual({ folder: vmFolderName(name), name, kind });
  });
});
