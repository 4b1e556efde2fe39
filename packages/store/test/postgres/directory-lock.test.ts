import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DirectoryLock, lockDirectory } from '../../src/postgres/directory-lock.ts';

let home: string;
const held: DirectoryLock[] = [];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'fc-lock-'));
});
afterEach(async () => {
  for (const lock of held.splice(0)) await lock.release();
  rmSync(home, { recursive: true, force: true });
});

async function take(path: string): Promise<DirectoryLock> {
  const lock = await lockDirectory(path);
  held.push(lock);
  return lock;
}

it('is held once, and names its holder', async () => {
  await take(join(home, 'data'));
  await expect(take(join(home, 'data'))).rejects.toMatchObject({
    code: 'directory_locked',
    message: expect.stringContaining(String(process.pid)),
  });
});

it('can be taken again after its release, which is safe to repeat', async () => {
  const lock = await take(join(home, 'data'));
  await lock.release();
  await lock.release();
  await take(join(home, 'data'));
});

it('is the same by every spelling of the path, and leaves nothing on disk', async () => {
  mkdirSync(join(home, 'real'));
  symlinkSync('real', join(home, 'link'));
  await take(join(home, 'real', 'data'));
  for (const spelling of ['link/data', 'real/../real/data', 'real//data/']) {
    await expect(take(join(home, spelling))).rejects.toMatchObject({ code: 'directory_locked' });
  }
  expect(readdirSync(join(home, 'real'))).toEqual([]);
});

it('of one folder does not bar another', async () => {
  await take(join(home, 'one'));
  await take(join(home, 'two'));
  mkdirSync(join(home, 'sub'));
  await take(join(home, 'sub', 'one'));
});

it('is given to exactly one of many that ask at the same time', async () => {
  const asked = await Promise.allSettled(Array.from({ length: 20 }, () => take(join(home, 'data'))));
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

it('is free the moment its holder is killed', async () => {
  const script = fileURLToPath(new URL('./hold-lock.ts', import.meta.url));
  const holder = spawn(process.execPath, [script, join(home, 'data')], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  await expect(take(join(home, 'data'))).rejects.toMatchObject({ code: 'directory_locked' });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await take(join(home, 'data'));
});

it.each([
  ['says nothing', ''],
  ['says nonsense', '{'],
  ['names another folder', JSON.stringify({ pid: 1, path: '/elsewhere' })],
  ['never stops talking', 'x'.repeat(100_000)],
])('held by a process that %s is told apart from our own', async (_name, answer) => {
  const lock = await take(join(home, 'data'));
  await lock.release();
  const squatter = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(answer);
  });
  squatter.listen(`\0${lock.name}`);
  await once(squatter, 'listening');
  await expect(take(join(home, 'data'))).rejects.toMatchObject({ code: 'lock_name_taken' });
  squatter.close();
});

it('refuses a name that the kernel would cut off', async () => {
  await expect(take(join(home, 'd'.repeat(100)))).rejects.toMatchObject({ code: 'lock_name_too_long' });
});
