import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { installVersion, removeOldVersions } from '../src/index.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-version-'));
  mkdirSync(join(folder, 'from/migrations/meta'), { recursive: true });
  write('node', 'program');
  write('app.mjs', 'code');
  write('migrations/0000.sql', 'select 1');
  write('migrations/meta/journal.json', '{}');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string): void => writeFileSync(join(folder, 'from', name), text, { mode: 0o600 });
const versions = (): string => join(folder, 'versions');
const install = () =>
  installVersion(versions(), Object.fromEntries(['node', 'app.mjs', 'migrations'].map((name) => [name, join(folder, 'from', name)])));

describe('an installed version', () => {
  it('holds files and folders under the digest of their contents', async () => {
    const first = await install();
    expect(first.folder).toBe(join(versions(), first.digest));
    expect(readdirSync(first.folder, { recursive: true }).map(String).sort()).toEqual([
      'app.mjs',
      'migrations',
      'migrations/0000.sql',
      'migrations/meta',
      'migrations/meta/journal.json',
      'node',
    ]);
    expect(await install()).toEqual(first);
    expect(readdirSync(versions())).toEqual([first.digest]);
  });

  it.each(['node', 'app.mjs', 'migrations/0000.sql', 'migrations/meta/journal.json'])('is another one when %s is', async (name) => {
    const first = await install();
    write(name, 'changed');
    const second = await install();
    expect(second.digest).not.toBe(first.digest);
    expect(existsSync(first.folder)).toBe(true);
    await removeOldVersions(versions(), second.digest);
    expect(readdirSync(versions())).toEqual([second.digest]);
  });

  it('is another one when a folder gets one more file', async () => {
    const first = await install();
    write('migrations/0001.sql', '');
    expect((await install()).digest).not.toBe(first.digest);
  });

  it.runIf(process.getuid?.() === 0)(
    'as root (needs root) is open to every account, and shares no file that others may change',
    async () => {
      chmodSync(join(folder, 'from/app.mjs'), 0o777);
      const { folder: installed } = await install();
      for (const name of ['', 'node', 'app.mjs', 'migrations', 'migrations/0000.sql'])
        expect((statSync(join(installed, name)).mode & 0o777).toString(8), name).toBe('755');
      writeFileSync(join(folder, 'from/app.mjs'), 'changed behind its back');
      expect(readFileSync(join(installed, 'app.mjs'), 'utf8')).toBe('code');
    },
  );

  it('leaves nothing when a source is missing', async () => {
    rmSync(join(folder, 'from/node'));
    await expect(install()).rejects.toThrow('ENOENT');
    expect(readdirSync(versions())).toEqual([]);
  });
});
