import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workspacePackages } from '../../tools/lint/workspace-packages.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PNPM = join(ROOT, 'node_modules/.bin/pnpm');

/** What the example of each published package prints. */
const PRINTED: Readonly<Record<string, readonly string[]>> = {
  '@firecrew/artifact-capture': ['entry', 'data', 'entry-end', 'skipped', 'end'],
  '@firecrew/egress-policy': ["verdict: 'allowed'", 'not_listed', 'metadata_address', 'operator_rule', 'own_address'],
  '@firecrew/protocol': ['health 1'],
  '@firecrew/sdk': ['1 mission.created', 'true mission_not_found 404'],
  '@firecrew/seat-keys': ["[ 'coder: minted', 'writer: no seat' ]"],
  '@firecrew/stop-gate': ['next_round', 'test/add.test.js'],
  '@firecrew/topology': ["[ 'coder' ]", "[ 'reviewer' ]"],
};
/** Published as a program in one file, so it is no library with an example. */
const PROGRAMS = ['@firecrew/cli'];
const DEPENDS_ON: Readonly<Record<string, readonly string[]>> = { '@firecrew/sdk': ['@firecrew/protocol'] };

interface Ended {
  readonly code: unknown;
  readonly output: string;
}

const COMMAND_MS = 90_000;

let base = '';
/** The tarball of each package, by the package's name. */
const tarballs = new Map<string, string>();

/** The caller's environment without what `npm test` adds to it, and with a cache that holds nothing. */
function environment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    (pair): pair is [string, string] =>
      pair[1] !== undefined && (!/^(?:npm_|NODE_PATH|INIT_CWD)/i.test(pair[0]) || pair[0] === 'npm_config_registry'),
  );
  return { ...Object.fromEntries(kept), npm_config_cache: join(base, 'cache'), npm_config_update_notifier: 'false', NO_COLOR: '1' };
}

function run(command: string, args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd, env: environment(), timeout: COMMAND_MS }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), output: `${stdout}${stderr}` }),
    );
  });
}

async function pack(folder: string, name: string): Promise<void> {
  const target = join(base, 'packed', name.replace('/', '-'));
  await mkdir(target, { recursive: true });
  const { code, output } = await run(PNPM, ['pack', '--pack-destination', target], join(ROOT, folder));
  const [file] = await readdir(target);
  if (code !== 0 || file === undefined) throw new Error(`${name} cannot be packed: ${output}`);
  tarballs.set(name, join(target, file));
}

const published = workspacePackages(ROOT)
  .filter(({ manifest }) => !manifest.private && !PROGRAMS.includes(manifest.name))
  .map(({ folder, manifest }) => ({ folder, name: manifest.name, needs: Object.keys(manifest.dependencies) }));

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'firecrew-tarballs-'));
  for (const { folder, name } of published) await pack(folder, name);
});
afterAll(() => rm(base, { recursive: true, force: true }));

/** Installs tarballs with npm alone into an empty folder, and runs the example that lies in the package itself. */
async function runExample(name: string, { offline, without }: { offline: boolean; without?: string }): Promise<Ended> {
  const folder = await mkdtemp(join(base, 'user-'));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const files = [name, ...(DEPENDS_ON[name] ?? [])].map((one) => tarballs.get(one) ?? '');
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', ...(offline ? ['--offline'] : [])];
  const installed = await run('npm', ['install', ...flags, ...files], folder);
  if (installed.code !== 0) return installed;
  if (without !== undefined) await rm(join(folder, 'node_modules', name, without), { recursive: true });
  const readme = await readFile(join(folder, 'node_modules', name, 'README.md'), 'utf8');
  await writeFile(join(folder, 'example.ts'), /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? 'throw new Error("no example")');
  return await run(process.execPath, ['example.ts'], folder);
}

describe('a published package', () => {
  it('has a row here', () => {
    expect(published.map(({ name }) => name).toSorted()).toEqual(Object.keys(PRINTED).toSorted());
  });

  it.each(published.filter(({ needs }) => needs.length === 0))(
    '$name works from its tarball alone, without a network',
    async ({ name }) => {
      const { code, output } = await runExample(name, { offline: true });
      for (const text of PRINTED[name] ?? []) expect(output).toContain(text);
      expect(code).toBe(0);
    },
  );

  it.for(published.filter(({ needs }) => needs.length > 0))(
    '$name works from its tarball and what it depends on',
    async ({ name, needs }, context) => {
      const reached = await run('npm', ['view', 'zod', 'name', '--fetch-retries=0', '--fetch-timeout=10000'], base);
      if (reached.code !== 0) context.skip(`npm reaches no registry, which ${name} needs for ${needs.join(', ')}`);
      const { code, output } = await runExample(name, { offline: false });
      for (const text of PRINTED[name] ?? []) expect(output).toContain(text);
      expect(code).toBe(0);
    },
  );

  it('does not work without its code, so nothing of this workspace is reached', async () => {
    const name = '@firecrew/topology';
    const { code, output } = await runExample(name, { offline: true, without: 'dist' });
    expect(output).toContain('ERR_MODULE_NOT_FOUND');
    expect(code).not.toBe(0);
  });
});
