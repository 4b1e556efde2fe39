import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ExecGroup, ExecGroups } from '../../src/exec/exec-groups.ts';

let root = '';
let notes: string[] = [];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'fc-groups-'));
  notes = [];
});
afterEach(() => rm(root, { recursive: true, force: true }));

const note = (text: string): void => void notes.push(text);
function placesOf(own: string): { root: string; ownFile: string } {
  writeFileSync(join(root, 'own'), own);
  return { root, ownFile: join(root, 'own') };
}

describe('the groups of commands', () => {
  it.each([
    ['this process is in a group itself', '0::/system.slice\n', 'is in the group "0::/system.slice"'],
    ['the kernel has both versions of them', '1:memory:/\n0::/\n', 'is in the group'],
    ['its kernel cannot kill one', '0::/\n', 'cannot kill a group'],
  ])('are not made where %s, which is told', (_why, own, told) => {
    expect(ExecGroups.open(note, placesOf(own))).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining(told)]);
  });

  it('are not made where there are none to be seen, which is told', () => {
    expect(ExecGroups.open(note, { root: join(root, 'none'), ownFile: join(root, 'none') })).toBeUndefined();
    expect(notes).toEqual([expect.stringContaining('ENOENT')]);
  });
});

describe('a group', () => {
  const groupOf = (files: Readonly<Record<string, string>>): ExecGroup => {
    const path = join(root, 'group');
    mkdirSync(path);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
    return new ExecGroup(path);
  };

  it('gives the ids of its processes, and none when it is gone', () => {
    const group = groupOf({ 'cgroup.procs': '17\n4711\n' });
    expect(group.pids()).toEqual([17, 4711]);
    rmSync(group.path, { recursive: true });
    expect(group.pids()).toEqual([]);
  });

  it('is killed as one, and stays for as long as its kernel holds on to it', async () => {
    const group = groupOf({ 'cgroup.events': 'populated 1\nfrozen 0\n', 'cgroup.kill': '' });
    await group.end();
    expect(readFileSync(join(group.path, 'cgroup.kill'), 'latin1')).toBe('1');
    expect(existsSync(group.path)).toBe(true);
  });

  it('that is gone is killed without a word', async () => {
    const group = groupOf({});
    rmSync(group.path, { recursive: true });
    await group.end();
  });
});
