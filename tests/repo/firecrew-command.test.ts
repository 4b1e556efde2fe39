// `bin/firecrew`: the command of a checkout, on the pinned Node, with everything of the caller kept.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ROOT } from './small-workspace.ts';

/** What the test's stand-in for the CLI says about how it was started. */
const STAND_IN = `
import { readFileSync } from 'node:fs';
if (process.argv[2] === 'wait') {
  process.on('SIGTERM', () => process.exit(42));
  setInterval(() => {}, 1000);
  console.log('waiting');
} else {
  const input = process.argv[2] === 'read' ? readFileSync(0, 'utf8') : '';
  console.log(JSON.stringify({ args: process.argv.slice(2), input, node: process.execPath, caller: process.env.FIRECREW_CALLER_PATH }));
  process.exitCode = 7;
}
`;
const PINNED = `node-${process.platform}-${process.arch}`;

let folder: string;
let checkout: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'firecrew-command-'));
  checkout = join(folder, 'a checkout');
  write('package.json', JSON.stringify({ name: 'checkout', private: true, type: 'module', bin: { firecrew: 'bin/firecrew' } }));
  write('packages/cli/package.json', '{ "type": "module" }');
  write('packages/cli/bundle/command.mjs', STAND_IN);
  mkdirSync(join(checkout, 'bin'));
  copyFileSync(join(ROOT, 'bin', 'firecrew'), join(checkout, 'bin', 'firecrew'));
  chmodSync(join(checkout, 'bin', 'firecrew'), 0o755);
  mkdirSync(join(checkout, 'node_modules', PINNED, 'bin'), { recursive: true });
  symlinkSync(process.execPath, join(checkout, 'node_modules', PINNED, 'bin', 'node'));
  mkdirSync(join(checkout, 'node_modules', '.bin'));
  symlinkSync('../../bin/firecrew', join(checkout, 'node_modules', '.bin', 'firecrew'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(checkout, path)), { recursive: true });
  writeFileSync(join(checkout, path), text);
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Ended> {
  const child = spawn(command, args, { cwd: checkout, env: { ...process.env, HOME: folder, ...environment } });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [stdout, stderr]: Buffer[][] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => stdout?.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr?.push(chunk));
  const [code]: unknown[] = await once(child, 'close');
  const text = (chunks: Buffer[] | undefined): string => Buffer.concat(chunks ?? []).toString('utf8');
  return { code: typeof code === 'number' ? code : null, stdout: text(stdout), stderr: text(stderr) };
}

const command = (): string => join(checkout, 'bin', 'firecrew');

describe('the command of a checkout', () => {
  it('keeps arguments, standard input and the exit status', async () => {
    const args = ['read', '--task', 'say "hi" & go', '', '$HOME', "it's"];
    const { code, stdout } = await run(command(), args, {}, 'from the caller\n');
    expect(code).toBe(7);
    expect(JSON.parse(stdout)).toMatchObject({ args, input: 'from the caller\n' });
  });

  it('becomes the process it starts, so that signals reach it', async () => {
    const child = spawn(command(), ['wait'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([42, null]);
  });

  it('runs on the pinned Node and is found through links', async () => {
    symlinkSync(command(), join(folder, 'firecrew'));
    const { stdout } = await run(join(folder, 'firecrew'), [], { PATH: '/usr/bin:/bin' });
    expect(JSON.parse(stdout)).toMatchObject({ node: process.execPath });
  });

  it('saves the PATH of the caller without the folders that npm and the checkout put in front', async () => {
    const ours = [
      join(checkout, 'node_modules', '.bin'),
      join(folder, 'node_modules', '.bin'),
      join(checkout, 'node_modules', PINNED, 'bin'),
      '/usr/lib/node_modules/npm/node_modules/@npmcli/run-script/lib/node-gyp-bin',
    ];
    const theirs = ['/opt/my tools/bin', '/other/node_modules/.bin', '/usr/bin', '/bin'];
    const { stdout } = await run(command(), [], { PATH: [...ours, '', ...theirs].join(':'), FIRECREW_CALLER_PATH: '/stale' });
    expect(JSON.parse(stdout)).toMatchObject({ caller: theirs.join(':') });
  });

  it('says the one command to run when it is not built', async () => {
    rmSync(join(checkout, 'packages', 'cli', 'bundle'), { recursive: true });
    const { code, stderr } = await run(command(), ['--version']);
    expect(code).toBe(2);
    expect(stderr).toBe(`firecrew: this checkout is not built yet; run: (cd '${checkout}' && npm run build)\n`);
  });

  it('says what is missing when there is no Node that is new enough', async () => {
    rmSync(join(checkout, 'node_modules', PINNED), { recursive: true });
    const old = join(folder, 'old');
    mkdirSync(old);
    writeFileSync(join(old, 'node'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const { code, stderr } = await run(command(), [], { PATH: `${old}:/usr/bin:/bin` });
    expect(code).toBe(2);
    expect(stderr).toMatch(/needs Node 22\.13 or newer/);
  });

  it('falls back to a Node of the caller that is new enough', async () => {
    rmSync(join(checkout, 'node_modules', PINNED), { recursive: true });
    const { stdout } = await run(command(), [], { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` });
    expect(JSON.parse(stdout)).toMatchObject({ node: process.execPath });
  });
});

describe('npx', () => {
  /** A registry that refuses every connection: a port of this machine that nothing listens on. */
  async function closedRegistry(): Promise<string> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    server.close();
    await once(server, 'close');
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
  }

  const npx = async (cwd: string, args: readonly string[]): Promise<Ended> => {
    checkout = cwd;
    return await run('npx', ['--no-install', 'firecrew', ...args], {
      npm_config_registry: await closedRegistry(),
      npm_config_fetch_retries: '0',
    });
  };

  it('finds the command in a checkout without asking a registry', async () => {
    const { code, stdout, stderr } = await npx(checkout, ['status', '--json']);
    expect([code, stderr]).toEqual([7, '']);
    expect(JSON.parse(stdout)).toMatchObject({ args: ['status', '--json'] });
  });

  it('starts the command of this repository', async () => {
    const { code, stdout, stderr } = await npx(ROOT, ['--version']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^\S*\d+\.\d+\.\d+/);
  });
});
