import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { scanTree, unpackTree } from '../../src/index.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

describe('unpackTree', () => {
  const archive = async () => {
    await mkdir(at('root/sub'), { recursive: true });
    await writeFile(at('root/new'), 'new');
    await writeFile(at('root/sub/file'), 'x'.repeat(5000));
    return packBytes(at('root'));
  };

  it('replaces the old tree as a whole, so that a deletion arrives', async () => {
    await mkdir(at('dest'));
    await writeFile(at('dest/old'), 'old');
    await unpackTree([(await archive()).bytes], at('dest'));
    expect(readdirSync(at('dest')).sort()).toEqual(['new', 'sub']);
    expect(readdirSync(at()).sort()).toEqual(['dest', 'root']);
  });

  it("removes a link in the destination's place, never what it leads to", async () => {
    await mkdir(at('elsewhere'));
    await writeFile(at('elsewhere/kept'), '');
    await symlink(at('elsewhere'), at('dest'));
    await unpackTree([(await archive()).bytes], at('dest'));
    expect(lstatSync(at('dest')).isDirectory()).toBe(true);
    expect(readdirSync(at('elsewhere'))).toEqual(['kept']);
  });

  it('leaves the destination untouched for a stream cut at any block, and nothing beside it', async () => {
    const { bytes } = await archive();
    await mkdir(at('dest'));
    await writeFile(at('dest/old'), 'old');
    for (let cut = 0; cut < bytes.length; cut += 256) {
      await expect(unpackTree([bytes.subarray(0, cut)], at('dest'))).rejects.toMatchObject({ code: 'archive_refused' });
    }
    expect(readdirSync(at('dest'))).toEqual(['old']);
    expect(readdirSync(at()).sort()).toEqual(['dest', 'root']);
  });

  it('reports a stream that fails as cut', async () => {
    const { bytes } = await archive();
    async function* failing() {
      yield bytes.subarray(0, 700);
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    }
    await expect(unpackTree(failing(), at('dest'))).rejects.toMatchObject({
      code: 'archive_cut',
      message: expect.stringContaining('ECONNRESET'),
    });
    expect(existsSync(at('dest'))).toBe(false);
  });

  it.each(['entries', 'bytes', 'digest'] as const)('refuses a trailer with other %s', async (field) => {
    const { bytes, report } = await archive();
    const trailer = { entries: report.entries, bytes: report.bytes, digest: report.digest };
    const wrong = { ...trailer, [field]: field === 'digest' ? 'f'.repeat(64) : trailer[field] + 1 };
    await expect(unpackTree([bytes], at('dest'), { trailer: wrong })).rejects.toMatchObject({ code: 'archive_trailer_mismatch' });
    expect(existsSync(at('dest'))).toBe(false);
    await unpackTree([bytes], at('dest'), { trailer: async () => trailer });
    expect(existsSync(at('dest/new'))).toBe(true);
  });

  it('refuses another snapshot than the wanted one', async () => {
    const { bytes } = await archive();
    await expect(unpackTree([bytes], at('dest'), { snapshotId: '0'.repeat(64) })).rejects.toMatchObject({
      code: 'snapshot_mismatch',
    });
    expect(existsSync(at('dest'))).toBe(false);
  });

  it("drops guest modes and the process's mask", async () => {
    await mkdir(at('root'));
    await writeFile(at('root/run'), '', { mode: 0o777 });
    await writeFile(at('root/text'), '', { mode: 0o600 });
    await mkdir(at('root/d'), { mode: 0o700 });
    const { bytes } = await packBytes(at('root'));
    const mask = process.umask(0o077);
    try {
      await unpackTree([bytes], at('dest'));
    } finally {
      process.umask(mask);
    }
    const mode = (name: string) => lstatSync(at('dest', name)).mode & 0o7777;
    expect(['', 'run', 'text', 'd'].map(mode)).toEqual([0o755, 0o755, 0o644, 0o755]);
  });

  it('carries the names over that the host keeps, and puts them back when it fails', async () => {
    await mkdir(at('dest/.git'), { recursive: true });
    await writeFile(at('dest/.git/HEAD'), 'ours');
    await expect(unpackTree([Buffer.from('x')], at('dest'), { carryOver: ['.git'] })).rejects.toMatchObject({
      code: 'archive_refused',
    });
    expect(readFileSync(at('dest/.git/HEAD'), 'utf8')).toBe('ours');
    await unpackTree([(await archive()).bytes], at('dest'), { carryOver: ['.git', 'absent'] });
    expect(readdirSync(at('dest')).sort()).toEqual(['.git', 'new', 'sub']);
  });

  it('says when there is no place beside the destination', async () => {
    await expect(unpackTree(Readable.from([]), at('no/such/parent'))).rejects.toMatchObject({ code: 'staging_failed' });
  });

  it('handles a path as long as a path can be', async () => {
    const deep = Array.from({ length: 19 }, () => 'd'.repeat(200)).join('/');
    const chain = deep.split('/');
    mkdirSync(at('root'));
    execFileSync('sh', ['-c', `${chain.map((name) => `mkdir ${name} && cd ${name}`).join(' && ')} && echo deep > file`], {
      cwd: at('root'),
    });
    const { bytes, report } = await packBytes(at('root'));
    expect(report).toMatchObject({ files: 1, complete: true });
    expect((await unpackTree([bytes], at('dest'))).snapshotId).toBe((await scanTree(at('root'))).snapshotId);
  });

  it('brings a 2 MiB file and a file of quotes and substitutions unchanged', async () => {
    const odd = 'it\'s "$(touch x)" `id` \\ %s\n';
    await mkdir(at('root'));
    writeFileSync(at('root/big'), Buffer.alloc(2 * 1024 ** 2, 'pattern'));
    writeFileSync(at('root', odd.replaceAll('/', '').trim()), odd);
    await symlink('up/../down', at('root/link'));
    const { bytes } = await packBytes(at('root'));
    await unpackTree([bytes], at('dest'));
    expect(readFileSync(at('dest/big')).equals(readFileSync(at('root/big')))).toBe(true);
    expect(readFileSync(at('dest', odd.trim()), 'utf8')).toBe(odd);
    expect(readlinkSync(at('dest/link'))).toBe('up/../down');
    await truncate(at('root/big'), 0);
    expect(lstatSync(at('dest/big')).size).toBe(2 * 1024 ** 2);
  });
});

// Root may do everything, so what a mode forbids is shown by a process of an ordinary user.
describe('as an ordinary user', () => {
  const script = `
    import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
    import { packTree, unpackTree } from ${JSON.stringify(new URL('../../src/tree/index.ts', import.meta.url).href)};
    const base = process.argv[1];
    for (const name of ['r/locked', 'r/only-read', 'd/only-read']) mkdirSync(base + '/' + name, { recursive: true });
    for (const name of ['r/locked/x', 'r/forbidden', 'r/only-read/y', 'd/only-read/z']) writeFileSync(base + '/' + name, '');
    for (const name of ['r/locked', 'r/forbidden']) chmodSync(base + '/' + name, 0);
    for (const name of ['r/only-read', 'd/only-read']) chmodSync(base + '/' + name, 0o555);
    const { stream, done } = packTree(base + '/r');
    const { entries, leftover } = await unpackTree(stream, base + '/d');
    const { skipped, complete } = await done;
    const names = (list) => list.map(({ path }) => Buffer.from(path).toString());
    console.log(JSON.stringify({ entries: names(entries), leftover: leftover ?? null, skipped: names(skipped), reasons: skipped.map(({ reason }) => reason), complete }));
  `;

  it('says what could not be read, and removes an old tree that locks its owner out', async () => {
    chmodSync(at(), 0o777);
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script, at()], {
      ...(process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}),
      cwd: '/',
      encoding: 'utf8',
    });
    expect(JSON.parse(output)).toEqual({
      entries: ['only-read/y'],
      leftover: null,
      skipped: ['forbidden', 'locked'],
      reasons: ['unreadable', 'unreadable'],
      complete: false,
    });
    expect(readdirSync(at()).sort()).toEqual(['d', 'r']);
    // Whoever is not root removes only what is open.
    for (const name of ['r/locked', 'r/only-read']) chmodSync(at(name), 0o700);
  });
});
