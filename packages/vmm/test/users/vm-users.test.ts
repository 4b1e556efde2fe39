import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readHostUsers } from '../../src/users/read-host-users.ts';
import { type LentUser, VmUsers } from '../../src/users/vm-users.ts';

const asRoot = it.skipIf(process.getuid?.() !== 0);
const needsRoot = process.getuid?.() === 0 ? '' : ' (not run: this user may not start processes as others)';
/** Of this process alone: locks of ids are those of the whole host. */
const FIRST = 1_000_000 + process.pid * 100;
const MODULE = fileURLToPath(new URL('../../src/users/vm-users.ts', import.meta.url));

let root = '';
const lent: LentUser[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fc-users-'));
});
afterEach(() => {
  for (const user of lent.splice(0)) user.release();
});
afterAll(() => rm(root, { recursive: true, force: true }));

const range = (count: number, firstUid = FIRST) => new VmUsers({ firstUid, count, vmRoots: [root] });
async function take(users: VmUsers): Promise<number> {
  const user = await users.take('vm-1');
  lent.push(user);
  return user.owner.uid;
}

/** Another process that holds the one user of a range. */
async function otherHolder(firstUid: number): Promise<ChildProcess> {
  const code = `const { VmUsers } = await import(${JSON.stringify(MODULE)});
    const { owner } = await new VmUsers({ firstUid: ${firstUid}, count: 1, vmRoots: [] }).take('vm-2');
    console.log(owner.uid); setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

describe('the users of a range', () => {
  it('are lent to one VM at a time, also by callers that know nothing of each other', async () => {
    const uids = await Promise.all(Array.from({ length: 12 }, () => take(range(12))));
    expect(uids.toSorted((one, two) => one - two)).toEqual(Array.from({ length: 12 }, (_, index) => FIRST + index));
    await expect(range(12).take('vm-13')).rejects.toMatchObject({ code: 'owners_used_up', id: 'vm-13' });
    const [first] = lent;
    first?.release();
    expect(await take(range(12))).toBe(first?.owner.uid);
  });

  it('have a group of the same number', async () => {
    const user = await range(1).take('vm-1');
    lent.push(user);
    expect(user.owner).toEqual({ uid: FIRST, gid: FIRST });
  });

  it('are free again when the process that had them was killed', async () => {
    const child = await otherHolder(FIRST + 20);
    await expect(range(1, FIRST + 20).take('vm-1')).rejects.toMatchObject({ code: 'owners_used_up' });
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(await take(range(1, FIRST + 20))).toBe(FIRST + 20);
  });

  asRoot(`are kept back while a process of theirs runs, whoever started it${needsRoot}`, async () => {
    const uid = FIRST + 30;
    const child = spawn('/bin/sleep', ['1000'], { uid, gid: uid, stdio: 'ignore' });
    await once(child, 'spawn');
    expect(await take(range(2, uid))).toBe(uid + 1);
    await expect(range(2, uid).take('vm-2')).rejects.toMatchObject({ code: 'owners_used_up' });
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(await take(range(2, uid))).toBe(uid);
  });

  asRoot(`are kept back while the folder of a VM of theirs is there${needsRoot}`, async () => {
    const uid = FIRST + 40;
    const folder = join(root, 'turn.1', 'v1a');
    await mkdir(folder, { recursive: true });
    await chown(folder, 0, uid);
    await expect(range(1, uid).take('vm-1')).rejects.toMatchObject({ code: 'owners_used_up' });
    await rm(folder, { recursive: true });
    expect(await take(range(1, uid))).toBe(uid);
  });

  it('are not taken for free where the host cannot be looked at', () => {
    const places = { passwd: '/etc/passwd', proc: '/proc', vmRoots: [root] };
    expect(readHostUsers(places)).toMatchObject({ accounts: expect.any(Set), running: expect.any(Set), folders: expect.any(Set) });
    expect(readHostUsers(places).running).toContain(process.getuid?.());
    expect(readHostUsers(places).accounts).toContain(0);
    expect(() => readHostUsers({ ...places, passwd: join(root, 'none') })).toThrow('ENOENT');
    expect(() => readHostUsers({ ...places, proc: join(root, 'none') })).toThrow('ENOENT');
  });
});
