import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const LAUNCHER = fileURLToPath(new URL('../launcher/firecrew.mjs', import.meta.url));
const PACKAGED = `node-${process.platform}-${process.arch}`;
const STAND_IN = 'process.stdout.write(JSON.stringify([process.argv.slice(2), process.env.FIRECREW_CALLER_PATH])); process.exitCode = 7;';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-launcher-'));
  mkdirSync(join(folder, 'node_modules/@firecrew/cli/bundle'), { recursive: true });
  mkdirSync(join(folder, 'node_modules/.bin'));
  copyFileSync(LAUNCHER, join(folder, 'node_modules/@firecrew/cli/bundle/firecrew.mjs'));
  writeFileSync(join(folder, 'node_modules/@firecrew/cli/bundle/command.mjs'), STAND_IN);
  symlinkSync('../@firecrew/cli/bundle/firecrew.mjs', join(folder, 'node_modules/.bin/firecrew'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the launcher on this Node, which says it is of another version. */
function launch(version: string, args: readonly string[] = ['run', 'a b']) {
  const said = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  const env = { PATH: `${folder}/node_modules/.bin:/x/node_modules/.bin:/usr/bin` };
  const { status, stdout, stderr, signal } = spawnSync(
    process.execPath,
    ['--import', said, join(folder, 'node_modules/.bin/firecrew'), ...args],
    {
      env,
      encoding: 'utf8',
    },
  );
  return { status, stdout, stderr, signal };
}

/** An optional package with a Node that says `version`, and starts the command all the same. */
function installNode(version: string): void {
  mkdirSync(join(folder, 'node_modules', PACKAGED, 'bin'), { recursive: true });
  writeFileSync(join(folder, 'node_modules', PACKAGED, 'package.json'), '{}');
  const node = join(folder, 'node_modules', PACKAGED, 'bin/node');
  writeFileSync(node, `#!/bin/sh\n[ "$1" = --version ] && { echo ${version}; exit; }\nexec ${process.execPath} "$@"\n`);
  chmodSync(node, 0o755);
}

const GOOD = { status: 7, stdout: JSON.stringify([['run', 'a b'], '/x/node_modules/.bin:/usr/bin']), stderr: '', signal: null };

describe('the start of the published command', () => {
  it.each(['22.13.0', '24.1.0', '100.0.0'])('runs on Node %s, with the PATH as its caller knows it', (version) => {
    expect(launch(version)).toEqual(GOOD);
  });

  it.each(['22.12.9', '20.19.0', '8.0.0'])('says on Node %s what it needs', (version) => {
    expect(launch(version)).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(`^firecrew: needs Node 22\\.13 or newer, and this is Node ${version}\\..*\\n$`),
      signal: null,
    });
  });

  it('uses the Node that is installed beside it where its own is too old, and ends as the command does', () => {
    installNode('v24.0.0');
    expect(launch('20.0.0')).toEqual(GOOD);
    writeFileSync(
      join(folder, 'node_modules/@firecrew/cli/bundle/command.mjs'),
      "process.kill(process.pid, 'SIGTERM'); setTimeout(() => 0, 5000);",
    );
    expect(launch('20.0.0')).toMatchObject({ status: null, signal: 'SIGTERM' });
  });

  it('does not use one that is too old as well', () => {
    installNode('v18.0.0');
    expect(launch('20.0.0').status).toBe(2);
  });
});
