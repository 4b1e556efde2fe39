import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { endLeftovers } from '../../src/agent/end-leftovers.ts';

const ATTEMPT = { turnId: 'turn-of-a-test', attempt: 1, epoch: 1 };
/** Name of a group of this attempt, as the drivers give it. */
const name = (nonce: string): string => `fc${createHash('sha256').update('turn-of-a-test.1.1').digest('hex').slice(0, 16)}-${nonce}`;

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-left-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('removes the groups of the VMs of an attempt, whatever still runs in them', async () => {
  const groups = ['00000001', '00000002', '00000003'].map((nonce) => join(folder, 'cgroup', name(nonce)));
  for (const [index, group] of groups.entries()) {
    await mkdir(group, { recursive: true });
    await mkdir(join(folder, 'turn', `v${index}a`), { recursive: true });
    await writeFile(join(folder, 'turn', `v${index}a`, 'groups'), `${group}\n`);
  }
  await writeFile(join(folder, 'turn', 'spec.json'), '{}');
  // One that something holds on to is named.
  await mkdir(join(groups[2] ?? '', 'inner'));
  expect(await endLeftovers(ATTEMPT, join(folder, 'turn'))).toEqual([groups[2]]);
  expect(groups.map((group) => existsSync(group))).toEqual([false, false, true]);
});

it('finds nothing where the folder of the attempt is gone', async () => {
  expect(await endLeftovers(ATTEMPT, join(folder, 'absent'))).toEqual([]);
});
