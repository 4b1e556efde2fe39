import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callerPathBinds } from '../../src/index.ts';

let root = '';
let home = '';
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'fc-path-')));
  home = join(root, 'people/me');
  mkdirSync(home, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function program(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '#!/bin/sh\necho ran\n');
  chmodSync(path, 0o755);
  return path;
}

function link(path: string, target: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

const targets = async (path: string): Promise<string[]> => (await callerPathBinds(path, [home])).binds.map(({ target }) => target);

describe('the binds of a caller PATH', () => {
  it('a version of a version manager is bound as a whole, once', async () => {
    const version = join(home, '.nvm/versions/node/v20');
    program(join(version, 'bin/node'));
    program(join(version, 'lib/node_modules/npm/bin/npm-cli.js'));
    link(join(version, 'bin/npm'), '../lib/node_modules/npm/bin/npm-cli.js');
    expect(await targets(join(version, 'bin'))).toEqual([version]);
  });

  it('a folder of links in a home is bound with what the links lead to, and nothing beside it', async () => {
    program(join(home, '.local/share/tool/1.2/bin/tool'));
    writeFileSync(join(home, '.local/share/keys'), 'secret');
    link(join(home, '.local/bin/tool'), '../share/tool/1.2/bin/tool');
    expect(await targets(join(home, '.local/bin'))).toEqual([join(home, '.local/bin'), join(home, '.local/share/tool/1.2')]);
  });

  it('each step of a chain of links is there in the guest', async () => {
    program(join(root, 'apps/v3/bin/tool'));
    link(join(root, 'apps/current'), 'v3');
    link(join(root, 'links/tool'), join(root, 'apps/current/bin/tool'));
    const { binds } = await callerPathBinds(join(root, 'links'), [home]);
    expect(binds).toContainEqual({ source: join(root, 'apps/v3'), target: join(root, 'apps/current') });
    expect(binds).toContainEqual({ source: join(root, 'apps/v3'), target: join(root, 'apps/v3') });
  });

  it('links in the middle of a path and links in an install folder lead on, and nothing is bound in another bind', async () => {
    program(join(root, 'store/v3/bin/tool'));
    link(join(root, 'store/latest'), 'v3');
    link(join(root, 'app/current'), join(root, 'store/latest'));
    link(join(root, 'app/bin/tool'), '../current/bin/tool');
    mkdirSync(join(root, 'app/lib'));
    program(join(root, 'python/3.12/bin/python'));
    link(join(root, 'store/v3/bin/python'), join(root, 'python/3.12/bin/python'));
    expect(await targets(join(root, 'app/bin'))).toEqual(
      ['app', 'python/3.12', 'store/latest', 'store/v3'].map((path) => join(root, path)),
    );
  });

  it.each([
    { what: 'a home', folder: () => home },
    { what: 'a folder above a home', folder: () => root },
    { what: 'the root', folder: () => '/' },
    { what: 'a relative folder', folder: () => 'node_modules/.bin' },
    { what: 'a missing folder', folder: () => join(root, 'missing') },
  ])('$what is never bound, and is told', async ({ folder }) => {
    const found = await callerPathBinds(folder(), [home]);
    expect([found.binds, found.path, found.leftOut.length]).toEqual([[], '', 1]);
  });

  it('a link to a program right in a home binds no home', async () => {
    program(join(home, 'tool'));
    link(join(root, 'links/tool'), join(home, 'tool'));
    const found = await callerPathBinds(join(root, 'links'), [home]);
    expect(found.binds.map(({ target }) => target)).toEqual([join(root, 'links')]);
    expect(found.leftOut.join()).toContain(join(home, 'tool'));
  });

  it('a dot folder in a home is never bound as a prefix', async () => {
    program(join(home, '.cargo/bin/cargo'));
    mkdirSync(join(home, '.cargo/lib'));
    writeFileSync(join(home, '.cargo/credentials.toml'), 'secret');
    expect(await targets(join(home, '.cargo/bin'))).toEqual([join(home, '.cargo/bin')]);
  });

  it('what every guest has needs no bind but stays on the PATH', async () => {
    expect(await callerPathBinds('/usr/bin', [home])).toMatchObject({ binds: [], path: '/usr/bin' });
  });

  it('a link that leads to itself ends', async () => {
    link(join(root, 'links/a'), 'b');
    link(join(root, 'links/b'), 'a');
    expect(await targets(join(root, 'links'))).toEqual([join(root, 'links')]);
  });
});
