import { existsSync } from 'node:fs';
import { chmod, chown, lstat, mkdir, mkdtemp, open, readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { VerifiedFile } from '@firecrew/rootfs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeGroup, removeStaleGroups, STALE_GROUP_MS, wasOutOfMemory } from '../../src/cgroup/vm-cgroup.ts';
import { type Jail, jailOf, makeJail, placeOwn, placeShared } from '../../src/firecracker-driver/jail.ts';
import { runPlaces } from '../../src/firecracker-driver/run-places.ts';

const asRoot = it.skipIf(process.getuid?.() !== 0);
const needsRoot = process.getuid?.() === 0 ? '' : ' (only root owns jails)';

/** A folder on another file system than the temporary one, where this host has one. */
async function otherFileSystem(): Promise<string | undefined> {
  const [here, there] = await Promise.all([stat(tmpdir()), stat('/dev/shm').catch(() => undefined)]);
  return there === undefined || there.dev === here.dev ? undefined : '/dev/shm';
}
const elsewhere = await otherFileSystem();

let folder = '';
let jail: Jail;
const opened: VerifiedFile[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-jail-'));
  jail = jailOf(folder, 'fc0123456789abcdef-00000001', '/usr/local/bin/firecracker');
});
afterEach(async () => {
  for (const { handle } of opened.splice(0)) await handle.close();
  await rm(folder, { recursive: true, force: true });
});

async function storeFile(path: string, mode = 0o444): Promise<VerifiedFile> {
  await writeFile(path, 'what every VM reads');
  await chmod(path, mode);
  const file = { name: 'base', path, handle: await open(path), sizeBytes: 19, sha256: '0'.repeat(64) };
  opened.push(file);
  return file;
}

describe('a jail', () => {
  const run = () => runPlaces(folder, false);

  it('is a folder of its own below the VM its folder, reached by a short link', async () => {
    await makeJail(jail, run());
    expect(jail.root).toBe(join(folder, 'j/firecracker/fc0123456789abcdef-00000001/root'));
    expect(await readlink(run().folder)).toBe(jail.root);
    expect((await stat(run().folder)).isDirectory()).toBe(true);
  });

  it('is never used a second time', async () => {
    await makeJail(jail, run());
    await rm(run().folder);
    await writeFile(join(jail.root, 'left'), 'over');
    await expect(makeJail(jail, run())).rejects.toMatchObject({
      code: 'jail_failed',
      message: expect.stringContaining('from an earlier run'),
    });
    expect(await readFile(join(jail.root, 'left'), 'utf8')).toBe('over');
  });

  asRoot(`gets shared files by hard link, and never another owner or mode${needsRoot}`, async () => {
    await makeJail(jail, run());
    const file = await storeFile(join(folder, 'base'));
    expect(await placeShared(jail, 'base', file)).toBe('linked');
    const [placed, source] = await Promise.all([lstat(join(jail.root, 'base')), lstat(file.path)]);
    expect([placed.ino, placed.mode & 0o777, placed.uid]).toEqual([source.ino, 0o444, 0]);
  });

  asRoot.each([
    ['somebody else owns', (path: string) => chown(path, 65_534, 65_534)],
    ['others may change', (path: string) => chmod(path, 0o646)],
    ['the group may change', (path: string) => chmod(path, 0o464)],
    ['its user could not read', (path: string) => chmod(path, 0o400)],
  ])(`gets a copy of root's of a file that %s${needsRoot}`, async (_, change) => {
    await makeJail(jail, run());
    const file = await storeFile(join(folder, 'base'));
    await change(file.path);
    expect(await placeShared(jail, 'base', file)).toBe('copied');
    const [placed, source] = await Promise.all([lstat(join(jail.root, 'base')), lstat(file.path)]);
    expect([placed.ino === source.ino, placed.mode & 0o777, placed.uid]).toEqual([false, 0o444, 0]);
    expect(await readFile(join(jail.root, 'base'), 'utf8')).toBe('what every VM reads');
  });

  it.skipIf(process.getuid?.() !== 0 || elsewhere === undefined)(
    `gets a copy of a file on another file system${needsRoot || (elsewhere === undefined ? ' (there is none here)' : '')}`,
    async () => {
      await makeJail(jail, run());
      const far = await mkdtemp(join(elsewhere ?? '', 'fc-far-'));
      try {
        expect(await placeShared(jail, 'base', await storeFile(join(far, 'base')))).toBe('copied');
        expect(await readFile(join(jail.root, 'base'), 'utf8')).toBe('what every VM reads');
      } finally {
        await rm(far, { recursive: true });
      }
    },
  );

  asRoot(`refuses a path that leads to another file than the one that was checked${needsRoot}`, async () => {
    await makeJail(jail, run());
    const file = await storeFile(join(folder, 'base'));
    const other = await storeFile(join(folder, 'other'));
    await rename(other.path, file.path);
    await expect(placeShared(jail, 'base', file)).rejects.toMatchObject({
      code: 'jail_failed',
      message: expect.stringContaining('another file'),
    });
  });

  it('gets the VM its own files as they are', async () => {
    await makeJail(jail, run());
    await writeFile(join(folder, 'scratch'), 'disk', { mode: 0o600 });
    await placeOwn(jail, 'scratch', join(folder, 'scratch'));
    expect((await stat(join(jail.root, 'scratch'))).ino).toBe((await stat(join(folder, 'scratch'))).ino);
    await expect(placeOwn(jail, 'scratch', join(folder, 'scratch'))).rejects.toMatchObject({ code: 'jail_failed' });
  });
});

describe('the group of a VM', () => {
  it('says when the kernel killed for want of memory', async () => {
    const events = (text: string) => writeFile(join(folder, 'memory.events'), text);
    expect(wasOutOfMemory(folder)).toBe(false);
    await events('low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n');
    expect(wasOutOfMemory(folder)).toBe(false);
    await events('low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n');
    expect(wasOutOfMemory(folder)).toBe(true);
  });

  it('is removed once it is empty, and its absence is no fault', async () => {
    const group = join(folder, 'group');
    await mkdir(group);
    expect([await removeGroup(group), existsSync(group), await removeGroup(group)]).toEqual([true, false, true]);
  });

  it('is reported when it stays', async () => {
    const group = join(folder, 'group');
    await mkdir(join(group, 'inner'), { recursive: true });
    expect(await removeGroup(group)).toBe(false);
  });

  it('is swept when its host process died before it could: only an old one, and only of our names', async () => {
    const names = ['fc0123456789abcdef-00000001', 'fc0123456789abcdef-0000000X', 'other', 'fc0123456789abcdef-00000002'];
    for (const name of names) await mkdir(join(folder, name));
    await removeStaleGroups(folder, Date.now());
    expect(names.filter((name) => existsSync(join(folder, name)))).toEqual(names);
    await mkdir(join(folder, 'fc0123456789abcdef-00000002/busy'));
    await removeStaleGroups(folder, Date.now() + STALE_GROUP_MS + 1000);
    expect(names.filter((name) => existsSync(join(folder, name)))).toEqual(names.slice(1));
    await removeStaleGroups(join(folder, 'absent'), Date.now());
  });
});
