// The way from a fresh clone to a target: what a user of a wrong machine reads, what the children see, and when nothing is done again.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transform } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withBuildLock } from '../../tools/bootstrap/build-lock.mjs';
import { callerPath, installEnvironment, targetEnvironment, withoutLifecycle } from '../../tools/bootstrap/environment.mjs';
import { quietStep, runTarget } from '../../tools/bootstrap/run-step.mjs';
import { installStamp, isStamped, keepStamp, outputStamp, sourceStamp } from '../../tools/bootstrap/stamps.mjs';
import { runTool } from '../../tools/lint/run-tool.ts';
import { ROOT } from './small-workspace.ts';

const START = join(ROOT, 'tools', 'start.cjs');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'firecrew-start-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

describe('the start', () => {
  it.each(['0.10.48', '12.22.12', '18.20.8', '20.18.3'])('tells Node %s in one sentence what is needed', async (version) => {
    write('pretend.cjs', `Object.defineProperty(process.versions, 'node', { value: '${version}' });`);
    const { status, output } = await runTool(process.execPath, ['--require', join(folder, 'pretend.cjs'), START, 'build'], folder);
    expect(status).toBe(1);
    expect(output).toBe(`Firecrew needs Node 20.19 or newer to start (it then brings its own Node 24); this is Node ${version}.`);
  });

  it('is written so that every Node can parse it', async () => {
    await expect(transform(readFileSync(START, 'utf8'), { target: 'es5', logLevel: 'silent' })).resolves.toMatchObject({ warnings: [] });
    await expect(transform('const a = 1;', { target: 'es5', logLevel: 'silent' })).rejects.toThrow(/const/);
  });

  it('asks for git where there is none', async () => {
    symlinkSync(process.execPath, join(folder, 'node'));
    const { status, output } = await runTool(process.execPath, [START, 'build'], folder, { PATH: folder });
    expect([status, output]).toEqual([1, 'firecrew: git is not on the PATH. Install git and run this again.']);
  });

  it('names its targets to who asks for another', async () => {
    const { status, output } = await runTool(process.execPath, [START, 'constructor'], folder);
    expect(status).toBe(1);
    expect(output).toMatch(/^firecrew: unknown target constructor; there are demo, test, lint/);
  });
});

describe('the environment', () => {
  it('loses what npm adds for its own scripts and keeps what reaches a registry', () => {
    const kept = {
      HOME: '/h',
      NODE_EXTRA_CA_CERTS: '/ca.pem',
      HTTPS_PROXY: 'http://p',
      npm_config_registry: 'http://r',
      npm_config_cafile: '/ca.pem',
    };
    const dropped = {
      npm_lifecycle_event: 'test',
      npm_package_json: '/x',
      npm_execpath: '/n',
      npm_config_user_agent: 'npm',
      npm_config_prefix: '/p',
      npm_command: 'run',
      npm_config_noproxy: '',
      INIT_CWD: '/x',
      NODE: '/usr/bin/node',
    };
    expect(withoutLifecycle({ ...kept, ...dropped })).toEqual(kept);
  });

  it('gives the PATH of the caller without the folders that npm and this repository put in front', () => {
    const own = [
      '/a/project/node_modules/.bin',
      '/a/node_modules/.bin',
      '/node_modules/.bin',
      '/usr/lib/node_modules/npm/node_modules/@npmcli/run-script/lib/node-gyp-bin',
      `/a/project/node_modules/node-${process.platform}-${process.arch}/bin`,
    ];
    const theirs = ['/home/user/bin', '/other/project/node_modules/.bin', '/usr/bin'];
    expect(callerPath([...own, '', ...theirs].join(':'), '/a/project')).toBe(theirs.join(':'));
  });

  it('puts the pinned Node first for targets, and remembers the PATH of the caller', () => {
    const env = targetEnvironment({
      environment: { PATH: '/usr/bin', FIRECREW_CALLER_PATH: '/stale' },
      root: '/p',
      nodeBinary: '/p/n/bin/node',
    });
    expect(env.PATH).toBe('/p/n/bin:/p/node_modules/.bin:/usr/bin');
    expect(env.FIRECREW_CALLER_PATH).toBe('/usr/bin');
  });

  it('switches telemetry, update checks and prompts off', () => {
    expect(installEnvironment({ PATH: '/usr/bin' }, '/p')).toMatchObject({
      CI: 'true',
      DO_NOT_TRACK: '1',
      TURBO_TELEMETRY_DISABLED: '1',
      NO_UPDATE_NOTIFIER: '1',
      npm_config_update_notifier: 'false',
    });
    expect(targetEnvironment({ environment: {}, root: '/p', nodeBinary: '/n/node' })).toMatchObject({
      DO_NOT_TRACK: '1',
      TURBO_TELEMETRY_DISABLED: '1',
    });
  });
});

describe('a stamp', () => {
  beforeEach(() => {
    write('package.json', '{}');
    write('pnpm-lock.yaml', 'lock');
    write('packages/a/package.json', '{}');
    write('packages/a/src/index.ts', 'export {};');
    write('packages/a/dist/index.js', 'export {};');
    write('packages/a/tsconfig.tsbuildinfo', '{}');
    write('packages/a/test/a.test.ts', '');
  });

  it('holds until it changes', () => {
    expect(isStamped(folder, 'install', 'x')).toBe(false);
    keepStamp(folder, 'install', 'x');
    expect(isStamped(folder, 'install', 'x')).toBe(true);
    expect(isStamped(folder, 'install', 'y')).toBe(false);
  });

  it.each([
    'package.json',
    'pnpm-lock.yaml',
    'pnpm-workspace.yaml',
    'packages/a/package.json',
    'apps/b/package.json',
    'tests/system/package.json',
  ])('of an install changes with %s', (path) => {
    const before = installStamp(folder);
    write(path, '{ "changed": true }');
    expect(installStamp(folder)).not.toBe(before);
  });

  it.each(['packages/a/src/index.ts', 'packages/a/migrations/1.sql', 'tsconfig.base.json', 'pnpm-lock.yaml'])(
    'of the sources changes with %s',
    (path) => {
      const before = sourceStamp(folder);
      write(path, 'changed');
      expect(sourceStamp(folder)).not.toBe(before);
    },
  );

  it.each(['packages/a/test/a.test.ts', 'packages/a/README.md', 'packages/a/dist/index.js', 'docs/a.md'])(
    'of the sources does not change with %s',
    (path) => {
      const before = sourceStamp(folder);
      write(path, 'changed');
      expect(sourceStamp(folder)).toBe(before);
    },
  );

  it('of what was built changes when it is removed, and when it was built by other means', () => {
    const before = outputStamp(folder);
    rmSync(join(folder, 'packages/a/dist'), { recursive: true });
    expect(outputStamp(folder)).not.toBe(before);
    write('packages/a/dist/index.js', 'export {};');
    expect(outputStamp(folder)).toBe(before);
    utimesSync(join(folder, 'packages/a/tsconfig.tsbuildinfo'), 1, 1);
    expect(outputStamp(folder)).not.toBe(before);
  });
});

describe('the lock of a build', () => {
  it('lets one after the other in, each told once', async () => {
    const log: string[] = [];
    let inside = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      log.push(`in ${inside}`);
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      inside -= 1;
    };
    await Promise.all([1, 2, 3].map(() => withBuildLock(folder, work, () => log.push('waits'))));
    expect(log.filter((line) => line === 'in 1')).toHaveLength(3);
    expect(log.filter((line) => line === 'waits')).toHaveLength(2);
  });

  it('is free again when its holder is killed', async () => {
    write(
      'hold.mjs',
      `import { withBuildLock } from ${JSON.stringify(join(ROOT, 'tools/bootstrap/build-lock.mjs'))};
      setInterval(() => {}, 1000);
      await withBuildLock(${JSON.stringify(folder)}, () => { console.log('held'); return new Promise(() => {}); }, () => {});`,
    );
    const holder = spawn(process.execPath, [join(folder, 'hold.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    let waited = 0;
    const next = withBuildLock(
      folder,
      async () => 'in',
      () => {
        waited += 1;
        holder.kill('SIGKILL');
      },
    );
    expect(await next).toBe('in');
    expect(waited).toBe(1);
  });

  it('passes on what the work throws, and is free after it', async () => {
    const fail = (): Promise<never> => Promise.reject(new Error('broken'));
    await expect(withBuildLock(folder, fail, () => {})).rejects.toThrow('broken');
    expect(
      await withBuildLock(
        folder,
        async () => 'in',
        () => {},
      ),
    ).toBe('in');
  });
});

describe('a step that ends badly', () => {
  const step = (script: string): Promise<void> =>
    quietStep({
      label: 'trying',
      command: process.execPath,
      args: ['-e', script],
      cwd: folder,
      env: process.env,
      hint: (output: string) => `Hint about ${output.includes('odd') ? 'odd' : 'even'}.`,
    });

  it('shows the end of its output and what to do', async () => {
    const script =
      "console.log('first'); console.error('the odd reason'); console.error('x WARN Unsupported engine: y'); process.exitCode = 3";
    await expect(step(script)).rejects.toThrow(/^trying failed \(exit 3\)\.\nfirst\nthe odd reason\n\nHint about odd\.$/);
  });

  it('says that it was interrupted, with the exit status of the signal', async () => {
    await expect(step("process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)")).rejects.toMatchObject({
      message: 'trying was ended by SIGTERM; run it again to go on.',
      exitCode: 143,
    });
  });

  it('says what cannot be found', async () => {
    const missing = { label: 'trying', command: 'no-such-command', args: [], cwd: folder, env: process.env, hint: () => 'Install it.' };
    await expect(quietStep(missing)).rejects.toThrow(/^cannot find no-such-command\. Install it\.$/);
  });
});

describe('a target', () => {
  const run = (script: string): Promise<unknown> => runTarget(process.execPath, ['-e', script], { cwd: folder, env: process.env });

  it.each([
    ['process.exitCode = 7', 7],
    ['', 0],
    ["process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)", 137],
  ])('%j ends with %i', async (script, code) => {
    expect(await run(script)).toBe(code);
  });
});
