import { readFileSync, writeFileSync } from 'node:fs';
import { codeOf } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { build, readSquashfs } from '../support/build.ts';
import { makeTar } from '../support/make-tar.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith } from '../support/tools.ts';

const at = temporaryFolder();
const itBuilds = itWith('tar2sqfs');

/** Stands for the tool that installs a suite: what it does is the network's, how it is called is ours. */
const installer = (): string => `#!/bin/sh
[ "$1" = --version ] && exit 0
printf '%s\\n' "$@" > ${at('arguments')}
printf '%s\\n' "$SOURCE_DATE_EPOCH" "$http_proxy" "$SECRET" > ${at('environment')}
cat ${at('suite.tar')}
`;

beforeEach(() => {
  writeFileSync(at('mmdebstrap'), installer(), { mode: 0o755 });
  writeFileSync(
    at('suite.tar'),
    makeTar([
      { name: './etc/', type: '5', mode: 0o755 },
      { name: './etc/debian_version', content: '12\n', mtime: 5 },
    ]),
  );
  vi.stubEnv('FIRECREW_CALLER_PATH', `${at()}:${process.env.PATH}`);
});
afterEach(() => vi.unstubAllEnvs());

const suite = async (name: string, packages: readonly string[] = [], mirror?: string) =>
  await build(at(), { source: { kind: 'suite', suite: name, packages, mirror } });

describe('an image of a suite', () => {
  itBuilds('is what the installer gives, with its times', async () => {
    const { facts, file } = await suite('debian:bookworm', ['git', 'ca-certificates'], 'https://mirror.example/debian');
    expect(facts.source).toEqual({ kind: 'suite', suite: 'debian:bookworm', packages: ['git', 'ca-certificates'] });
    expect((await readSquashfs(file)).get('etc/debian_version')).toMatchObject({ text: '12\n', mtime: 5 });
    expect(readFileSync(at('arguments'), 'utf8').trim().split('\n')).toEqual([
      '--variant=minbase',
      '--format=tar',
      '--architectures=amd64',
      '--include=git,ca-certificates',
      'bookworm',
      '-',
      'https://mirror.example/debian',
    ]);
  });

  itBuilds('is installed with one time and the proxies of this host, and nothing else of its environment', async () => {
    vi.stubEnv('http_proxy', 'http://proxy.example:3128');
    vi.stubEnv('SECRET', 'x');
    await suite('debian:bookworm');
    expect(readFileSync(at('environment'), 'utf8').split('\n')).toEqual(['1700000000', 'http://proxy.example:3128', '', '']);
  });

  itBuilds('that the installer cut is refused', async () => {
    writeFileSync(at('suite.tar'), readFileSync(at('suite.tar')).subarray(0, 1_200));
    expect(await suite('debian:bookworm').catch(codeOf)).toBe('layer_cut');
  });

  it('is never asked for with what is no suite or no package', async () => {
    for (const name of ['bookworm', 'debian:', 'debian:--help', 'debian:a b', 'arch:rolling', 'debian:../x'])
      expect(await suite(name).catch(codeOf), name).toBe('suite_unknown');
    for (const name of ['', '--option', 'a,b', 'a b', 'A'])
      expect(await suite('debian:bookworm', [name]).catch(codeOf), name).toBe('package_name_wrong');
  });

  it('says what is missing where nothing can install one', async () => {
    vi.stubEnv('FIRECREW_CALLER_PATH', at('nowhere'));
    vi.stubEnv('PATH', at('nowhere'));
    expect(await suite('debian:bookworm').catch(codeOf)).toBe('tool_missing');
  });
});
