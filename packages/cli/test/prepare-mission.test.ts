import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMissionSchema } from '@firecrew/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { planAgent } from '../src/run/agent-files.ts';
import { pushRefusal } from '../src/run/bring-back.ts';
import {
  DEFAULT_REGISTRY,
  readNpmSettings,
  registryEntry,
  resolveRegistry,
  strangeAuthorities,
  withRegistry,
} from '../src/run/npm-registry.ts';
import { missionRequest, planSetup, prepareMission } from '../src/run/prepare-mission.ts';
import { readRunOptions } from '../src/run/run-options.ts';

let folder: string;
let repo: string;
const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
const git = (...args: string[]): void =>
  void execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], { cwd: repo, env, stdio: 'ignore' });
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-prepare-'));
  repo = join(folder, 'repo');
  mkdirSync(repo);
  git('init', '-q', '-b', 'main');
  writeFileSync(join(repo, 'package-lock.json'), '{}');
  writeFileSync(join(repo, '.gitignore'), 'ignored.txt\n');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const options = (raw: Record<string, unknown> = {}) => readRunOptions({ repo, task: 'do it', agentCmd: 'agent', ...raw }, {});
const place = () => ({ cwd: folder, env, scratch: join(folder, 'scratch') });
const prepare = async (raw: Record<string, unknown> = {}) => await prepareMission(options(raw), place());

describe('a tree', () => {
  it('that is clean travels as HEAD, with the set-up of its lock file', async () => {
    const prepared = await prepare();
    expect([prepared.tree?.dirty, prepared.setup]).toEqual([false, 'npm ci']);
    expect(prepared.notes[0]).toContain('package-lock.json is there');
  });

  it('with changes says so, and what stays here', async () => {
    writeFileSync(join(repo, 'new.txt'), 'x');
    writeFileSync(join(repo, '.env'), 'TOKEN=1');
    writeFileSync(join(repo, 'ignored.txt'), 'x');
    const { tree, notes } = await prepare({ setup: false });
    expect(tree?.dirty).toBe(true);
    expect(tree?.list.files.map((file) => file.path.toString())).toEqual(['.gitignore', 'new.txt', 'package-lock.json']);
    expect(notes).toEqual([
      '1 uncommitted change travels: the base is a commit made of HEAD and it',
      'looks like a secret and stays here: .env (send with --include-secret PATH)',
      '1 ignored path stays here (send with --include PATH)',
    ]);
  });

  it.each([
    [{ requireClean: true }, 'tree_dirty'],
    [{ push: 'origin' }, 'push_needs_push_dirty'],
  ])('with changes is refused for %j', async (raw, code) => {
    writeFileSync(join(repo, 'new.txt'), 'x');
    await expect(prepare(raw)).rejects.toMatchObject({ code });
  });

  it.each([
    ['given', { setup: 'make deps' }, 'make deps'],
    ['switched off', { setup: false }, undefined],
  ])('has a set-up that is %s', async (_what, raw, setup) => {
    expect((await prepare(raw)).setup).toBe(setup);
  });

  it('of a URL has no set-up that could be detected here', () => {
    expect(planSetup(options({ repo: 'https://h/r' }), new Set(['package-lock.json']))).toEqual({ command: undefined, notes: [] });
  });

  it('of a recipe has its phases, and what the recipe refuses is told before anything travels', async () => {
    const prepared = await prepare({ recipe: 'measured-change', check: 'npm test', input: ['measure=npm run bench'] });
    const request = createMissionSchema.parse(missionRequest(prepared, { kind: 'none' }, []));
    expect(request.phases.map(({ kind, setup, doneWhenCheck }) => [kind, setup, doneWhenCheck])).toEqual([
      ['benchmark', 'npm ci', 'npm run bench'],
      ['coding', 'npm ci', 'npm test'],
      ['benchmark', 'npm ci', 'npm run bench'],
    ]);
    await expect(prepare({ recipe: 'measured-change' })).rejects.toThrow(/needs the input measure/);
    await expect(prepare({ recipe: 'change', input: ['colour=red'] })).rejects.toThrow(/no input "colour"/);
    await expect(prepare({ recipe: 'none-such' })).rejects.toThrow(/there is no recipe "none-such"/);
  });

  it('is asked for in a form that the server takes', async () => {
    const prepared = await prepare({ check: 'npm test', allow: ['a.example'], allowAddress: ['a.example=10.0.0.1'], timeout: '5m' });
    const request = createMissionSchema.parse(missionRequest(prepared, { kind: 'none' }, []));
    expect(request).toMatchObject({
      title: 'do it',
      phases: [{ task: 'do it', setup: 'npm ci', doneWhenCheck: 'npm test' }],
      egress: { allow: ['a.example'], setupAllow: [], addressRules: [{ host: 'a.example', addresses: ['10.0.0.1'] }] },
      turnTimeoutMs: 300_000,
    });
  });
});

describe('an agent', () => {
  const facts = { agentFiles: [], pathFolders: ['/usr/bin'], treeHas: (path: string) => path === 'in-tree.sh' };
  it('that lies with the caller is sent along, and its command rewritten', () => {
    writeFileSync(join(folder, 'my agent.sh'), '#!/bin/sh\n');
    chmodSync(join(folder, 'my agent.sh'), 0o755);
    const plan = planAgent({ ...facts, cwd: folder, command: "'./my agent.sh' --fast" });
    expect(plan.command).toBe('"$FIRECREW_AGENT_DIR"/my_agent.sh --fast');
    expect(plan.files).toEqual([{ name: 'my_agent.sh', path: join(folder, 'my agent.sh') }]);
    expect(plan.notice).toContain('sent along');
  });
  it.each(['./in-tree.sh', 'agent', './absent.sh', '/usr/bin/env x'])('that is found elsewhere stays as it is: %s', (command) => {
    expect(planAgent({ ...facts, cwd: folder, command })).toEqual({ command, files: [], notice: undefined });
  });
  it('is refused with a file that is not there, or two of one name', () => {
    mkdirSync(join(folder, 'd'));
    writeFileSync(join(folder, 'a'), '');
    writeFileSync(join(folder, 'd/a'), '');
    expect(() => planAgent({ ...facts, cwd: folder, command: 'x', agentFiles: ['absent'] })).toThrow(/no file/);
    expect(() => planAgent({ ...facts, cwd: folder, command: 'x', agentFiles: ['a', 'd/a'] })).toThrow(/two agent files/);
    expect(planAgent({ ...facts, cwd: folder, command: 'x', agentFiles: ['a', './a'] }).files).toHaveLength(1);
  });
});

describe('the npm registry', () => {
  it.each([
    ['https://registry.npmjs.org/', 'registry.npmjs.org'],
    ['https://npm.example:8443/path/', 'npm.example:8443'],
    ['http://npm.example/', 'npm.example:80/tcp'],
    ['http://localhost:4873/', 'localhost:4873/tcp'],
  ])('%s is the entry %s', (url, entry) => {
    expect(registryEntry(url)).toMatchObject({ entry, plain: url });
  });
  it.each(['ftp://x/', 'nonsense', 'https://user:secret@npm.example/', 'http://127.0.0.1:4873/', 'http://[::1]/'])(
    '%s is refused',
    (url) => {
      expect(() => registryEntry(url)).toThrow(expect.objectContaining({ code: 'registry_unusable' }));
    },
  );
  it('that has no address is an error, never nothing', async () => {
    const fail = async (): Promise<string[]> => Promise.reject(new Error('ENOTFOUND'));
    await expect(resolveRegistry('https://npm.example/', fail)).rejects.toMatchObject({ code: 'registry_unresolvable' });
  });
  it('brings its addresses as a rule of the operator', async () => {
    const found = await resolveRegistry('https://npm.example/', async () => ['10.0.0.1', '10.0.0.1', '::1']);
    expect(found.rule).toEqual({ host: 'npm.example', addresses: ['10.0.0.1', '::1'] });
  });
  it('is that of the environment, unless npm itself passed on what the tree says', async () => {
    const variable = { npm_config_registry: 'https://evil.example/', PATH: '/nonexistent', HOME: folder };
    const inside = { ...variable, npm_command: 'exec', npm_config_cafile: '/evil.pem' };
    expect(await readNpmSettings(variable, folder)).toEqual({ registry: 'https://evil.example/', caFile: undefined });
    expect(await readNpmSettings(inside, folder)).toEqual({ registry: DEFAULT_REGISTRY, caFile: undefined });
    writeFileSync(join(folder, '.npmrc'), '; mine\nregistry = https://mine.example/\ncafile=/etc/mine.pem\n');
    expect(await readNpmSettings(inside, folder)).toEqual({ registry: 'https://mine.example/', caFile: '/etc/mine.pem' });
    expect(await readNpmSettings(variable, folder)).toEqual({ registry: 'https://evil.example/', caFile: '/etc/mine.pem' });
  });
  it.each([
    ['registry=https://asked.example/\ncafile=/etc/asked.pem\n', 'https://asked.example/', '/etc/asked.pem'],
    ['registry=undefined\ncafile=null\n', DEFAULT_REGISTRY, undefined],
  ])('is what npm says: %j', async (said, registry, caFile) => {
    writeFileSync(join(folder, 'npm'), `#!/bin/sh\n[ "$*" = 'config get registry cafile' ] && printf '%s' '${said}'\n`, { mode: 0o755 });
    const env = { PATH: `${folder}:/usr/bin:/bin`, HOME: folder };
    expect(await readNpmSettings(env, folder)).toEqual({ registry, caFile });
  });
  it('comes with a word about the authorities of npm that a set-up does not get, unless all of Node trusts some', () => {
    const npm = { registry: DEFAULT_REGISTRY, caFile: '/etc/mine.pem' };
    expect(strangeAuthorities(npm, {})).toMatchObject({
      detail: expect.stringContaining('/etc/mine.pem'),
      fix: expect.stringMatching(/^export /),
    });
    expect(strangeAuthorities(npm, { NODE_EXTRA_CA_CERTS: '/etc/all.pem' })).toBeUndefined();
    expect(strangeAuthorities({ ...npm, caFile: undefined }, {})).toBeUndefined();
  });
  it('goes to the set-up unless it is npm’s own', () => {
    expect(withRegistry('npm ci', DEFAULT_REGISTRY)).toBe('npm ci');
    expect(withRegistry('npm ci', "https://h/it's/")).toBe("export npm_config_registry='https://h/it'\\''s/'; npm ci");
  });
});

it.each([
  [{ push: undefined, pushDirty: false }, { synthetic: true, awaitingApproval: true }, 'not_wanted'],
  [{ push: 'o', pushDirty: true }, { synthetic: false, awaitingApproval: true }, 'awaiting_approval'],
  [{ push: 'o', pushDirty: false }, { synthetic: true, awaitingApproval: false }, 'failed'],
  [{ push: 'o', pushDirty: true }, { synthetic: true, awaitingApproval: false }, undefined],
  [{ push: 'o', pushDirty: false }, { synthetic: false, awaitingApproval: false }, undefined],
])('pushes only what may be pushed: %j %j', (wanted, pack, pushed) => {
  expect(pushRefusal(pack, wanted)?.pushed).toBe(pushed);
});
