import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readlinkSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { identifyProcess, readBootId } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sweepScratchFolders, withScratchFolder } from '../../src/git/scratch-folder.ts';

describe('scratch folders', () => {
  let place: string;
  beforeEach(async () => {
    place = await mkdtemp(join(tmpdir(), 'fc-scratch-'));
    vi.stubEnv('TMPDIR', place);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(place, { recursive: true, force: true });
  });

  it('live as long as the work, also when it throws, and a sweep spares those in use', async () => {
    let seen = '';
    const failed = withScratchFolder(async (folder) => {
      seen = folder;
      expect(await sweepScratchFolders()).toBe(0);
      expect(existsSync(folder)).toBe(true);
      throw new Error('no luck');
    });
    await expect(failed).rejects.toThrow('no luck');
    expect(seen).toContain(place);
    expect(await readdir(place)).toEqual([]);
  });

  it('are removed with what they hold once their process was killed, and not before', async () => {
    const module = JSON.stringify(join(import.meta.dirname, '../../src/git/scratch-folder.ts'));
    const program = `const { withScratchFolder } = await import(${module});
      await withScratchFolder(async (folder) => { console.log(folder); await new Promise((done) => setTimeout(done, 60_000)); });`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const folder = line.toString().trim();
    await writeFile(join(folder, 'index'), 'x');
    expect(await sweepScratchFolders()).toBe(0);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await sweepScratchFolders()).toBe(1);
    expect(await readdir(place)).toEqual([]);
  });

  it('of another boot are removed; of another pid namespace, of another form, or no folders at all, are not', async () => {
    const self = identifyProcess(process.pid);
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    const earlier = '00000000-0000-4000-8000-000000000000';
    const rest = `${self?.startTicks}.${earlier}.AAAAAA`;
    const spared = [`firecrew-git-${process.pid}.1.${rest}`, 'firecrew-git-AAAAAA', `x-firecrew-git-${process.pid}.${namespace}.${rest}`];
    for (const name of [...spared, `firecrew-git-${process.pid}.${namespace}.${rest}`]) await mkdir(join(place, name));
    const file = `firecrew-git-1.${namespace}.0.${readBootId()}.AAAAAA`;
    await writeFile(join(place, file), '');
    expect(await sweepScratchFolders()).toBe(1);
    expect((await readdir(place)).sort()).toEqual([...spared, file].sort());
  });

  it.runIf(process.getuid?.() === 0)('of another user are left to them', async () => {
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    const folder = join(place, `firecrew-git-1.${namespace}.0.${readBootId()}.AAAAAA`);
    await mkdir(folder);
    await promisify(execFile)('chown', ['65534', folder]);
    expect(await sweepScratchFolders()).toBe(0);
  });
});
