// Keys in the keychain of the system, with the real command, its server, and a stand-in for the system's tool.
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keychainAdvice, missingTool } from '../src/seats/kept-keys.ts';
import { TestHome } from './command.ts';

describe('what is told where the tool of the keychain is missing', () => {
  it.each([
    ['linux', 'libsecret-tools'],
    ['darwin', 'PATH'],
    ['aix', 'no keychain of aix'],
  ])('on %s names a way out, and files as another', (platform, word) => {
    expect(keychainAdvice(platform)).toContain(word);
    expect(keychainAdvice(platform)).toContain('"keyStore": "files"');
  });

  it('is nothing where keys lie in files', () => expect(missingTool({ PATH: '/nowhere' }, { keyStore: 'files' })).toBeUndefined());
  it('is said of a PATH without it', () =>
    expect(missingTool({ FIRECREW_CALLER_PATH: '/nowhere' }, { keyStore: 'keychain' })).toContain('is not there'));
});

describe.runIf(process.platform === 'linux')('keys in a keychain', () => {
  const home = new TestHome();
  const bin = join(home.folder, 'bin');
  const entries = join(home.folder, 'entries');
  const files = () => readdirSync(join(home.root, 'client', 'seat-keys')).filter((name) => name.endsWith('.sealed'));
  const keychain = { FIRECREW_KEY_STORE: 'keychain', FIRECREW_CALLER_PATH: `${bin}:${process.env.PATH}` };
  const withKeychain = (...args: string[]) => home.start(args, { env: keychain }).ended;
  /** As much of the tool as these tests need: a file for each account; a keychain that is locked says of it but that it is there. */
  const tool = (isLocked: boolean) => {
    const script = `#!/bin/sh
for last; do :; done
entry='${entries}'/$(printf %s "$last" | tr / _)
case "$1" in
  store) ${isLocked ? "echo 'Prompt was dismissed' >&2; exit 1" : 'cat > "$entry"'} ;;
  lookup) ${isLocked ? 'exit 1' : '[ -e "$entry" ] || exit 1; cat "$entry"'} ;;
  search) [ ! -e "$entry" ] || echo '[/org/freedesktop/secrets/collection/login/1]' ;;
  clear) ${isLocked ? 'exit 1' : '[ -e "$entry" ] || exit 1; rm "$entry"'} ;;
esac
`;
    writeFileSync(join(bin, 'secret-tool'), script);
    chmodSync(join(bin, 'secret-tool'), 0o755);
  };
  beforeAll(async () => {
    mkdirSync(bin);
    mkdirSync(entries);
    await home.run('up');
    await home.run('seat', 'link', 'coder');
  });
  afterAll(() => home.remove());

  it('are found where they were filed before, and are moved by a rotation', async () => {
    tool(false);
    expect((await home.run('seat', 'mint', 'coder')).stdout).toBe('coder: minted\n');
    expect(files()).toHaveLength(1);
    expect((await withKeychain('seat', 'mint', 'coder')).stdout).toBe('coder: already stored\n');
    expect((await withKeychain('seat', 'rotate', 'coder')).stdout).toBe('coder: rotated\n');
    expect(files()).toEqual([]);
    expect(readdirSync(entries).map((name) => readFileSync(join(entries, name), 'utf8'))).toEqual([expect.stringMatching(/^firecrew1\./)]);
    expect((await withKeychain('seat', 'whoami', 'coder')).stdout).toContain('the seat of the role coder');
    expect((await withKeychain('doctor')).stdout).toMatch(/ok +keychain +answers/);
  });

  it('are not minted a second time, and nothing starts, while it is locked', async () => {
    tool(true);
    const minted = await withKeychain('seat', 'mint', 'coder');
    expect([minted.code, minted.stdout]).toEqual([1, expect.stringContaining('the store is locked')]);
    const started = await withKeychain('run', '--seat', 'coder', '--no-repo', '--task', 'x', '--agent-cmd', 'true', '--no-wait');
    expect([started.code, started.stderr]).toEqual([1, expect.stringContaining('(store_unreadable)')]);
    expect((await withKeychain('seat', 'list')).stdout).toContain('unreadable: the store is locked');
  });

  it('are told to have no tool where there is none, with what to do', async () => {
    rmSync(join(bin, 'secret-tool'));
    const env = { ...keychain, FIRECREW_CALLER_PATH: bin };
    const listed = await home.start(['seat', 'list'], { env }).ended;
    expect(listed.stderr).toContain('apt-get install libsecret-tools');
    expect(listed.stdout).toContain('unreadable: the credential helper is not installed');
    const looked = await home.start(['doctor', '--json'], { env }).ended;
    const finding = (JSON.parse(looked.stdout) as { check: string }[]).find(({ check }) => check === 'keychain');
    expect(finding).toMatchObject({ state: 'problem', fix: expect.stringContaining('libsecret-tools') as string });
    expect(readdirSync(entries)).toHaveLength(1);
  });
});
