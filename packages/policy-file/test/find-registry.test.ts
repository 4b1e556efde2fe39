import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatAllowRule } from '@firecrew/egress-policy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPolicyText } from '../src/index.ts';

const PROGRAM = { npm: 'npm', pip: 'python3', apt: 'apt-get', go: 'go' } as const;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-registry-'));
});
afterAll(async () => rm(folder, { recursive: true, force: true }));

/** An account whose client says `output`, wherever it is asked, unless it is asked in a project. */
async function account(kind: keyof typeof PROGRAM, output: string): Promise<Record<string, string>> {
  const bin = await mkdtemp(join(folder, 'bin-'));
  const file = join(bin, PROGRAM[kind]);
  await writeFile(
    file,
    `#!/bin/sh\ntest "$PWD" = / || exit 3\ntest -z "$npm_config_registry$GOFLAGS" || exit 4\ncat <<'END'\n${output}\nEND\n`,
  );
  await chmod(file, 0o755);
  return { PATH: `${bin}:/usr/bin:/bin`, HOME: folder, npm_config_registry: 'https://of-a-project.example/', GOFLAGS: '-x' };
}

async function entriesOf(kind: string, env: Record<string, string>): Promise<string[]> {
  const text = `version: 1\nmissions: { setup: ["registry:${kind}"] }\n`;
  const { policy } = await loadPolicyText(text, 'p.yaml', { backends: [], env });
  return policy.missions.setup.map(({ rule }) => formatAllowRule(rule));
}

describe('a registry word', () => {
  it.each([
    ['npm', 'https://mirror.example/npm/', ['mirror.example']],
    ['npm', 'http://mirror.example:4873', ['mirror.example:4873/tcp']],
    ['npm', 'https://someone:hunter2@mirror.example/', ['mirror.example']],
    [
      'pip',
      ":env:.cert='/etc/x.pem'\nglobal.index-url='https://index.example/simple'\nglobal.extra-index-url='https://one.example/s\\nhttps://two.example:8443/s'",
      ['index.example', 'one.example', 'two.example:8443'],
    ],
    [
      'apt',
      'http://deb.example/debian/\nhttp://deb.example/debian/\nhttps://security.example/',
      ['deb.example:80/tcp', 'security.example'],
    ],
    ['go', 'https://proxy.example|https://other.example,direct', ['proxy.example', 'other.example']],
  ] as const)('of %s whose client says %s stands for %j', async (kind, output, expected) => {
    expect(await entriesOf(kind, await account(kind, output))).toEqual(expected);
  });

  it.each([
    ['npm', 'undefined'],
    ['npm', 'https://127.0.0.1:4873/'],
    ['npm', 'https://[::1]/'],
    ['pip', "global.timeout='3'"],
    ['apt', 'cdrom:[Debian]/'],
    ['go', 'direct'],
    ['go', 'off'],
  ] as const)('of %s whose client says %s is an error, and no empty rule', async (kind, output) => {
    await expect(entriesOf(kind, await account(kind, output))).rejects.toMatchObject({
      code: 'registry_unresolvable',
      id: `registry:${kind}`,
    });
  });

  it('is never asked of a program of a tree, nor read from a folder that is named from where the server stands', async () => {
    const project = await mkdtemp(join(folder, 'project-'));
    const bin = join(project, 'node_modules', '.bin');
    await mkdir(bin, { recursive: true });
    await mkdir(join(project, '.cargo'));
    await writeFile(join(bin, 'npm'), '#!/bin/sh\necho https://of-a-tree.example/\n');
    await chmod(join(bin, 'npm'), 0o755);
    const own = await account('npm', 'https://mirror.example/');
    expect(await entriesOf('npm', { ...own, PATH: `${bin}/:.:${own.PATH}` })).toEqual(['mirror.example']);
    const cargo = '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://of-a-tree.example/"\n';
    await writeFile(join(project, '.cargo', 'config.toml'), cargo);
    const before = process.cwd();
    process.chdir(project);
    try {
      await expect(entriesOf('cargo', { HOME: folder, CARGO_HOME: '.cargo' })).rejects.toMatchObject({ code: 'registry_unresolvable' });
    } finally {
      process.chdir(before);
    }
  });

  it('of a client that is not there, or fails, is an error that tells no secret', async () => {
    await expect(entriesOf('npm', { PATH: folder })).rejects.toMatchObject({
      code: 'registry_unresolvable',
      message: /npm config get registry/,
    });
    const secret = entriesOf('npm', await account('npm', 'ftp://someone:hunter2@mirror.example/'));
    await expect(secret).rejects.toMatchObject({ code: 'registry_unresolvable', message: expect.not.stringContaining('hunter2') });
  });

  it.each([
    [
      'the mirror of crates-io, however often it is replaced, and further registries',
      '[source.crates-io]\nreplace-with = "a"\n[source.a]\nreplace-with = "b"\n[source.b]\nregistry = "sparse+https://index.example/i/"\n[registries.own]\nindex = "sparse+https://own.example:8443/i/"\n',
      ['index.example', 'own.example:8443'],
    ],
    [
      'a mirror that is a registry by name',
      '[source.crates-io]\nreplace-with = "own"\n[registries.own]\nindex = "sparse+https://own.example/i/"\n',
      ['own.example'],
    ],
  ])('of cargo stands for %s', async (_what, text, expected) => {
    const home = await mkdtemp(join(folder, 'cargo-'));
    await writeFile(join(home, 'config.toml'), text);
    expect(await entriesOf('cargo', { CARGO_HOME: home })).toEqual(expected);
  });

  it.each([
    ['is not there', undefined],
    ['replaces nothing', '[build]\njobs = 1\n'],
    ['turns in a circle', '[source.crates-io]\nreplace-with = "a"\n[source.a]\nreplace-with = "a"\n'],
    ['is no TOML', '[source'],
    ['names a folder of files', '[source.crates-io]\nreplace-with = "a"\n[source.a]\ndirectory = "vendor"\n'],
  ])('of cargo whose configuration %s is an error', async (_how, text) => {
    const home = await mkdtemp(join(folder, 'cargo-'));
    await mkdir(home, { recursive: true });
    if (text !== undefined) await writeFile(join(home, 'config.toml'), text);
    await expect(entriesOf('cargo', { CARGO_HOME: home })).rejects.toMatchObject({ code: 'registry_unresolvable' });
  });

  it('of a client that nobody knows is a fault of the file', async () => {
    await expect(entriesOf('gem', {})).rejects.toMatchObject({ code: 'policy_invalid', message: /missions\.setup\[0\]/ });
  });

  it('makes another policy when it stands for another host', async () => {
    const text = 'version: 1\nceiling: { setup: ["registry:npm"] }\n';
    const digest = async (output: string) =>
      (await loadPolicyText(text, 'p.yaml', { backends: [], env: await account('npm', output) })).digest;
    expect(await digest('https://a.example/')).toBe(await digest('https://a.example/'));
    expect(await digest('https://a.example/')).not.toBe(await digest('https://b.example/'));
  });
});
