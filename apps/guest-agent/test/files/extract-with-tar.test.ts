import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packTree } from '@firecrew/workspace';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { extractWithTar, findGnuTar } from '../../src/files/extract-with-tar.ts';

const LIMITS = { maxTotalBytes: 10_000_000, maxFileBytes: 10_000_000 };
let base = '';
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'firecrew-tar-'));
  mkdirSync(join(base, 'tree/sub/empty'), { recursive: true });
  mkdirSync(join(base, 'out'));
  writeFileSync(join(base, 'tree/sub/run'), 'run', { mode: 0o755 });
  writeFileSync(join(base, `tree/${'long'.repeat(40)}-ü`), 'x'.repeat(3_000_000));
  symlinkSync('/etc/passwd', join(base, 'tree/sub/link'));
});
afterEach(() => rm(base, { recursive: true, force: true }));

function script(name: string, text: string): string {
  const path = join(base, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

const packed = () => packTree(join(base, 'tree')).stream;

describe('findGnuTar', () => {
  it('takes the first that says it is GNU tar', async () => {
    const gnu = script('gnu', 'echo "tar (GNU tar) 1.34"');
    expect(await findGnuTar([join(base, 'missing'), script('other', 'echo "bsdtar 3.6"'), gnu])).toBe(gnu);
  });

  it('finds none where there is none', async () => {
    expect(await findGnuTar([join(base, 'missing'), script('failing', 'echo "tar (GNU tar) 1.34"; exit 1')])).toBeUndefined();
  });
});

describe('extractWithTar', () => {
  it('stores names, modes, links and empty folders as the own unpacker does', async (context) => {
    const tar = await findGnuTar();
    if (tar === undefined) return context.skip('this machine has no GNU tar');
    const out = join(base, 'out');
    expect(await extractWithTar(tar, packed(), out, LIMITS)).toEqual({ entries: 4, contentBytes: 3_000_003 });
    expect(readdirSync(join(out, 'sub')).sort()).toEqual(['empty', 'link', 'run']);
    expect(readlinkSync(join(out, 'sub/link'))).toBe('/etc/passwd');
    expect(readFileSync(join(out, `${'long'.repeat(40)}-ü`)).length).toBe(3_000_000);
    const modes = ['.', 'sub', 'sub/empty', 'sub/run'].map((name) => lstatSync(join(out, name)).mode & 0o7777);
    expect(modes).toEqual([0o755, 0o755, 0o755, 0o755]);
  });

  it('tells what a tar said that failed', async () => {
    const tar = script('failing', 'echo "No space left" >&2; exit 2');
    const extracting = extractWithTar(tar, packed(), join(base, 'out'), LIMITS);
    await expect(extracting).rejects.toMatchObject({ code: 'unpack_failed', message: expect.stringContaining('2: No space left') });
  });

  it('fails when tar was killed after it had all', async () => {
    const tar = script('killed', 'cat > /dev/null; kill -9 $$');
    await expect(extractWithTar(tar, packed(), join(base, 'out'), LIMITS)).rejects.toMatchObject({ code: 'unpack_failed' });
  });

  it('ends the tar of an archive that is refused', async () => {
    const tar = script('waiting', `cat > /dev/null; touch ${join(base, 'ended')}`);
    const extracting = extractWithTar(tar, packed(), join(base, 'out'), { ...LIMITS, maxTotalBytes: 1000 });
    await expect(extracting).rejects.toMatchObject({ code: 'archive_refused' });
    expect(readdirSync(base)).not.toContain('ended');
  });
});
