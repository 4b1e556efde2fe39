import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { git, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n' };
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
});

/** Where the server of this home writes its address: in its own folder where it has an account of its own. */
function serverFile(): string {
  return join(command.home, process.getuid?.() === 0 ? 'server' : 'run', 'server.json');
}
