import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig, readConfig } from '../src/agent-config.ts';

const SECRET = 'ab'.repeat(32);
const config = {
  generation: 1,
  secret: SECRET,
  socketPath: '/run/s',
  ports: { proxy: 3128, model: 0 },
  modelRoute: false,
  resync: true,
  folders: ['/workspace'],
  user: { uid: 1000, gid: 1000 },
  etc: { hosts: '127.0.0.1 localhost\n' },
  stateFolder: '/state',
  attemptMarker: 'attempt',
  environment: { PATH: '/bin' },
  platform: {},
  lifeline: true,
  aloneMs: 600_000,
};

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-config-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the configuration of the agent', () => {
  it('is taken when every field is there', () => {
    expect(parseConfig(JSON.stringify(config))).toEqual({ ...config, secret: Buffer.from(SECRET, 'hex') });
  });

  it.each([
    { what: 'a field is missing', change: { secret: undefined } },
    { what: 'there is a field of another generation', change: { later: 1 } },
    { what: 'the secret is short', change: { secret: SECRET.slice(2) } },
    { what: 'the socket path is relative', change: { socketPath: 's' } },
    { what: 'a port is out of range', change: { ports: { proxy: 65_536, model: 0 } } },
    { what: 'a time is none', change: { aloneMs: 0 } },
    { what: 'a variable is no text', change: { environment: { A: 1 } } },
    { what: 'a variable holds a NUL', change: { platform: { A: 'a\0b' } } },
    { what: 'the generation is 0', change: { generation: 0 } },
    { what: 'a file of /etc has a path', change: { etc: { '../hosts': 'x' } } },
    { what: 'its user is root', change: { user: { uid: 0, gid: 0 } } },
    { what: 'its user has more than two ids', change: { user: { uid: 1, gid: 1, name: 'x' } } },
    { what: 'a folder is relative', change: { folders: ['workspace'] } },
    { what: 'there are too many folders', change: { folders: Array.from({ length: 65 }, () => '/a') } },
  ])('is refused without its secret when $what', ({ change }) => {
    const run = (): unknown => parseConfig(JSON.stringify({ ...config, ...change }));
    expect(run).toThrow(expect.objectContaining({ code: 'bad_agent_config' }));
    expect(run).not.toThrow(SECRET.slice(0, 8));
  });

  it.each(['', '[]', 'null', `{"secret":"${SECRET}`])('is refused as %j without its secret', (text) => {
    expect(() => parseConfig(text)).toThrow(expect.objectContaining({ code: 'bad_agent_config' }));
    expect(() => parseConfig(text)).not.toThrow(SECRET.slice(0, 8));
  });

  it('a file with it is gone once it is read', async () => {
    const path = join(folder, 'config.json');
    await writeFile(path, JSON.stringify(config));
    await readConfig(['--config-file', path]);
    expect(existsSync(path)).toBe(false);
  });

  it.each([[], ['--config-fd', 'x'], ['/etc/passwd'], ['--config-fd']])('is not looked for with the arguments %j', async (...args) => {
    await expect(readConfig(args.filter((one) => one !== undefined))).rejects.toMatchObject({ code: 'bad_agent_config' });
  });

  it('is read from a descriptor, and the lifeline ends when that closes', async () => {
    const script = `
      const { readConfig } = await import(process.argv[1]);
      const { config, lifelineEnd } = await readConfig(['--config-fd', '3']);
      process.stdout.write(config.attemptMarker);
      await lifelineEnd;
      process.stdout.write(' ended');
    `;
    const source = new URL('../src/agent-config.ts', import.meta.url).href;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, source], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
    const line = child.stdio[3];
    if (line === null || line === undefined || !('write' in line) || child.stdout === null) throw new Error('no pipe');
    let output = '';
    const first = Promise.withResolvers<void>();
    child.stdout.on('data', (part: Buffer) => {
      output += part.toString();
      first.resolve();
    });
    line.write(`${JSON.stringify(config)}\n`);
    await first.promise;
    expect(output).toBe('attempt');
    line.destroy();
    await once(child, 'close');
    expect(output).toBe('attempt ended');
  });
});
