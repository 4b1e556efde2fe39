import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { git, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n' };
/** More than what the small disk of the test holds. */
const LARGE_BYTES = 4 * 1024 * 1024;
const ROLES = ['supervisor', 'server', 'nodeAgent', 'database'] as const;
const NOTHING = { supervisor: null, server: null, nodeAgent: null, database: null };

let command: Command;
const at = (name: string): string => join(command.folder, 'work', name);
beforeAll(async () => {
  command = await Command.make();
});
afterAll(async () => await command.stop());

const status = async () => await command.json(['status']);

describe('a home is refused by name, and nothing of it is touched, when', () => {
  it.each([
    ['its settings hold an unknown key', { 'config.json': '{"lisen": {"port": 1}}' }, 'settings_invalid', /"lisen"/],
    ['its settings are no JSON', { 'config.json': '{"listen' }, 'settings_invalid', /docs\/cli\.md/],
    ['a newer version made it', { 'home.json': '{"layout": 2, "homeId": "home_of_tomorrow"}' }, 'home_too_new', /newer firecrew/],
    ['its identity is damaged', { 'home.json': '{"layout"' }, 'home_damaged', /backup/],
    ['it is somebody’s own folder', { 'thesis.txt': 'x' }, 'home_occupied', /FIRECREW_HOME/],
    ['it has joined a server that cannot be read', { 'run/joined.json': '{' }, 'home_damaged', /node join/],
    ['its token is damaged', { 'run/token': 'fct_' }, 'home_damaged', /Remove it/],
  ])('%s', async (what, files, code, says) => {
    const home = at(`h${what.length}`);
    for (const [name, text] of Object.entries(files)) {
      await mkdir(join(home, name, '..'), { recursive: true });
      await writeFile(join(home, name), text);
    }
    const refused = await command.run(['--home', home, 'up']);
    expect([refused.code, refused.stderr]).toEqual([
      code === 'settings_invalid' || code === 'home_too_new' ? 2 : 1,
      expect.stringMatching(`firecrew: ${code}: `),
    ]);
    expect(refused.stderr).toMatch(says);
    for (const [name, text] of Object.entries(files)) expect(readFileSync(join(home, name), 'utf8')).toBe(text);
    expect(existsSync(join(home, 'database/data'))).toBe(false);
  });

  it('a folder above it may be written by everyone', async () => {
    await mkdir(at('open'));
    await chmod(at('open'), 0o777);
    const refused = await command.run(['--home', at('open/home'), 'up']);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/home_parent_unsafe: .*is writable by everyone\n.*chmod go-w/),
    });
  });

  it('it is a file', async () => {
    await writeFile(at('file'), '');
    expect(await command.run(['--home', at('file'), 'up'])).toMatchObject({ code: 1, stderr: expect.stringContaining('home_unusable') });
  });
});

describe('services', () => {
  /** A mission of the test whose work came back. */
  let done: { id: string; folder: string };

  it('are not left half started when their port is taken, and say so', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const address = holder.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const refused = await command.run(['up', '--listen', `127.0.0.1:${port}`]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(`listen_failed: .*127.0.0.1:${port}: another program has it\n.*listen`),
    });
    expect(await status()).toMatchObject({ ready: false, ...NOTHING });
    await new Promise((resolve) => holder.close(resolve));
    expect(await command.json(['up', '--listen', `127.0.0.1:${port}`])).toMatchObject({
      url: `http://127.0.0.1:${port}`,
      nodeOnline: true,
    });
    expect(await status()).toMatchObject({ ready: true, problems: [] });
  });

  it('do the work of a mission, which the faults below are not to lose', async () => {
    const folder = await makeRepository(at('repository'), FILES);
    const end = await command.json([
      'run',
      '--repo',
      folder,
      '--task',
      'x',
      '--agent-cmd',
      'echo x > done.txt',
      '--check',
      'test -e done.txt',
    ]);
    expect(end).toMatchObject({ kind: 'run.ended', outcome: { kind: 'completed' }, exitCode: 0 });
    done = { id: String(end.missionId), folder };
  });

  it('are found again when what is written of them is damaged', async () => {
    const before = await status();
    await writeFile(join(command.home, 'run/supervisor.json'), '{"supervisor":');
    const after = await until('a status that knows all', async () => {
      const now = await status();
      return ROLES.every((role) => now[role] !== null) ? now : undefined;
    });
    expect(ROLES.map((role) => after[role])).toEqual(ROLES.map((role) => before[role]));
  });

  it('start over a server file and a supervisor file that are damaged', async () => {
    expect((await command.run(['down'])).code).toBe(0);
    await writeFile(serverFile(), '\0\0\0');
    await writeFile(join(command.home, 'run/supervisor.json'), '[]');
    expect((await command.run(['up'])).code).toBe(0);
    expect(await status()).toMatchObject({ ready: true });
  });

  it('refuse an empty database under a home that holds work, and take the right one back', async () => {
    const data = join(command.home, 'database/data');
    expect((await command.run(['down'])).code).toBe(0);
    await rename(data, `${data}.lost`);
    const refused = await command.run(['up']);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/database_empty: .*\n.*backup/) });
    expect(await status()).toMatchObject({ ready: false, ...NOTHING });
    await rm(data, { recursive: true });
    await rename(`${data}.lost`, data);
    expect((await command.run(['up'])).code).toBe(0);
    const missions: unknown = JSON.parse((await command.run(['missions', '--json'])).stdout);
    expect(missions).toEqual([expect.objectContaining({ id: done.id, state: 'completed' })]);
  });

  it('never deliver a blob that rotted, and heal it when the same is uploaded again', async () => {
    const { id, folder } = done;
    const branch = (await git(folder, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/firecrew')).trim();
    await git(folder, 'branch', '-q', '-D', branch);
    await rm(join(command.home, 'server/repositories', id), { recursive: true });
    const blobs = readdirSync(join(command.home, 'server/blobs/workspaces'), { recursive: true, withFileTypes: true, encoding: 'utf8' });
    for (const blob of blobs.filter((entry) => entry.isFile())) {
      const file = join(blob.parentPath, blob.name);
      const bytes = await readFile(file);
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 0xff;
      await writeFile(file, bytes);
    }
    const fetched = await command.run(['fetch', id]);
    expect(fetched).toMatchObject({ code: 1, stderr: expect.stringMatching(/firecrew: blob_damaged: blob [0-9a-f]{64} .*\n.*backup/) });
    expect(await git(folder, 'for-each-ref', 'refs/heads/firecrew')).toBe('');
    const saved = await command.run(['artifacts', id, '--download', at('saved')]);
    expect(saved).toMatchObject({ code: 1, stderr: expect.stringMatching(/bad_reply: artifact .* arrived as/) });
    expect(readdirSync(at('saved'))).toEqual([]);
    const again = await command.json(['run', '--repo', folder, '--task', 'x', '--agent-cmd', 'echo x > done.txt']);
    expect(again).toMatchObject({ exitCode: 0, outcome: { kind: 'completed' } });
  });

  it('say that a disk of the server is full, and go on when it is not', async (context) => {
    const folder = await makeRepository(at('large'), FILES);
    await writeFile(join(folder, 'large.bin'), noise(LARGE_BYTES));
    await git(folder, 'add', 'large.bin');
    await git(folder, 'commit', '-q', '-m', 'large');
    const run = ['run', '--repo', folder, '--task', 'x', '--agent-cmd', 'echo x > done.txt'];
    const incoming = join(command.home, 'server/blobs/incoming');
    if (!mount(incoming, '2m')) return context.skip('the right to mount is missing');
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
    if (!mount(saved, '1m')) return context.skip('the right to mount is missing');
    const copy = at('tight-copy');
    execFileSync('cp', ['-a', join(folder, '.git'), copy]);
    mount(join(folder, '.git'), '2m');
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
    if (!mount(turns, '12m')) return context.skip('the right to mount is missing');
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
    if (!mount(database, '320m')) {
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

/** Leaves so many bytes of a file system. */
function fill(folder: string, leave: number): void {
  const { bavail, bsize } = statfsSync(folder);
  execFileSync(
    'dd',
    ['if=/dev/zero', `of=${join(folder, 'filler')}`, 'bs=4096', `count=${Math.max(0, Math.floor((bavail * bsize - leave) / 4096))}`],
    {
      stdio: 'ignore',
    },
  );
}

/** Where the server of this home writes its address: in its own folder where it has an account of its own. */
function serverFile(): string {
  return join(command.home, process.getuid?.() === 0 ? 'server' : 'run', 'server.json');
}

/** Bytes that do not compress, the same each time. */
function noise(bytes: number): Buffer {
  const parts = Array.from({ length: bytes / 32 }, (_, index) => createHash('sha256').update(String(index)).digest());
  return Buffer.concat(parts);
}

/** Lays a small file system over a folder, of the same owner and rights; false without the right to mount. */
function mount(folder: string, size: string): boolean {
  if (process.getuid?.() !== 0) return false;
  const { uid, gid, mode } = statSync(folder);
  try {
    execFileSync(
      'mount',
      ['-t', 'tmpfs', '-o', `size=${size},uid=${uid},gid=${gid},mode=${(mode & 0o7777).toString(8)}`, 'tmpfs', folder],
      { stdio: 'ignore' },
    );
    return true;
  } catch {
    return false;
  }
}
