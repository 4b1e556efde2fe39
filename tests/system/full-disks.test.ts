// What becomes of missions when a disk is full: that of the server, of the caller, of the node, of the database.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { git, makeRepository } from './support/repository.ts';
import { fill, mountSmall } from './support/small-disk.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n' };
/** More than what the small disk of the test holds. */
const LARGE_BYTES = 4 * 1024 * 1024;

let command: Command;
const at = (name: string): string => join(command.folder, 'work', name);

describe('services whose disk is full', () => {
  beforeAll(async () => {
    command = await Command.make();
    expect(await command.run(['up'])).toMatchObject({ code: 0 });
  });
  afterAll(async () => await command.stop());

  it('say that a disk of the server is full, and go on when it is not', async (context) => {
    const folder = await makeRepository(at('large'), FILES);
    await writeFile(join(folder, 'large.bin'), noise(LARGE_BYTES));
    await git(folder, 'add', 'large.bin');
    await git(folder, 'commit', '-q', '-m', 'large');
    const run = ['run', '--repo', folder, '--task', 'x', '--agent-cmd', 'echo x > done.txt'];
    const incoming = join(command.home, 'server/blobs/incoming');
    if (!mountSmall(incoming, '2m')) return context.skip('the right to mount is missing');
    try {
      const full = await command.run(run);
      expect(full, await command.log('server.log')).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/firecrew: disk_full: .*\n.*Free space/),
      });
      expect(readdirSync(incoming)).toEqual([]);
    } finally {
      execFileSync('umount', [incoming]);
    }
    expect(await command.json(run)).toMatchObject({ exitCode: 0 });
  });

  it('say that a disk of the caller is full, leave nothing half there, and fetch when it is not', async (context) => {
    const folder = await makeRepository(at('tight'), FILES);
    const objects = join(folder, '.git/objects/pack');
    const saved = at('tight-saved');
    await mkdir(saved);
    if (!mountSmall(saved, '1m')) return context.skip('the right to mount is missing');
    const copy = at('tight-copy');
    execFileSync('cp', ['-a', join(folder, '.git'), copy]);
    mountSmall(join(folder, '.git'), '2m');
    try {
      execFileSync('cp', ['-a', `${copy}/.`, join(folder, '.git')]);
      const agent = `head -c ${LARGE_BYTES} /dev/urandom > large.bin`;
      const end = await command.json(['run', '--repo', folder, '--task', 'x', '--agent-cmd', agent]);
      const full = { code: 'disk_full', message: expect.stringContaining(join(folder, '.git/objects')) };
      expect(end).toMatchObject({ exitCode: 1, outcome: { kind: 'completed' }, error: full });
      const id = String(end.missionId);
      expect(readdirSync(join(objects, '..')).filter((name) => name.startsWith('tmp_'))).toEqual([]);
      expect(await git(folder, 'for-each-ref', 'refs/heads/firecrew')).toBe('');
      for (const where of [
        ['--download', join(saved, 'all')],
        ['--archive', join(saved, 'all.tar')],
      ]) {
        const refused = await command.run(['artifacts', id, ...where]);
        expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/firecrew: disk_full: .*\n.*Free space/) });
      }
      expect(readdirSync(saved, { recursive: true })).toEqual(['all']);
      const wide = await makeRepository(at('wide'), FILES);
      expect(await command.run(['fetch', id, '--repo', wide])).toMatchObject({ code: 0 });
    } finally {
      execFileSync('umount', [saved]);
      execFileSync('umount', [join(folder, '.git')]);
    }
  });

  it('end an attempt for which the disk of the node is full as one that could not be collected', async (context) => {
    const folder = await makeRepository(at('small'), FILES);
    const turns = join(command.home, 'node/turns');
    if (!mountSmall(turns, '12m')) return context.skip('the right to mount is missing');
    try {
      const agent = 'echo x > done.txt; head -c 30000000 /dev/zero > big.bin; true';
      const end = await command.json(['run', '--repo', folder, '--task', 'x', '--agent-cmd', agent]);
      expect(end).toMatchObject({ exitCode: 1, outcome: { kind: 'uncollected' }, detail: expect.stringContaining('ENOSPC') });
      await until('an empty folder of turns', () => readdirSync(turns).length === 0);
    } finally {
      execFileSync('umount', [turns]);
    }
    expect(await command.json(['run', '--repo', folder, '--task', 'x', '--agent-cmd', 'echo x > done.txt'])).toMatchObject({ exitCode: 0 });
  });
});

describe('a database whose disk is full', () => {
  it('is said to be, and what waits for it goes on when there is room', async (context) => {
    const other = await Command.make();
    const database = join(other.home, 'database');
    await mkdir(database, { recursive: true });
    await chmod(other.home, 0o711);
    if (!mountSmall(database, '320m')) {
      await other.stop();
      return context.skip('the right to mount is missing');
    }
    try {
      const folder = await makeRepository(join(other.folder, 'work/repo'), FILES);
      const run = ['run', '--repo', folder, '--task', 'x', '--agent-cmd'];
      expect(await other.run(['up'])).toMatchObject({ code: 0 });
      const filler = join(database, 'filler');
      fill(database, 0);
      expect(await other.run([...run, 'echo x > done.txt'])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/firecrew: disk_full: .*\n.*Free space/),
      });
      await rm(filler);
      // Its log is more than there is room for, until there is.
      const agent = 'for i in 1 2 3 4 5 6; do head -c 1000000 /dev/urandom | base64; sleep 0.5; done; echo x > done.txt';
      const ends = other.json([...run, agent]);
      await until('an attempt', () => readdirSync(join(other.home, 'node/turns')).length > 0);
      fill(database, 2 * 1024 * 1024);
      await until('a full disk', async () =>
        /No space left/.test(await readFile(join(database, 'data.log'), 'utf8').then((text) => text.slice(-20_000))),
      );
      await rm(filler);
      const end = await ends;
      expect(end).toMatchObject({ exitCode: 0, outcome: { kind: 'completed' } });
    } finally {
      await rm(join(database, 'filler'), { force: true });
      await other.run(['down', '--force']);
      execFileSync('umount', [database]);
      await other.stop();
    }
  });
});

/** Bytes that do not compress, the same each time. */
function noise(bytes: number): Buffer {
  const parts = Array.from({ length: bytes / 32 }, (_, index) => createHash('sha256').update(String(index)).digest());
  return Buffer.concat(parts);
}
