import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { buildPayload, MAX_PAYLOAD_BYTES, PAYLOAD_FILE, PAYLOAD_MOUNT, payloadEntries, writePayload } from '../../src/index.ts';
import { readSquashfs } from '../support/build.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith } from '../support/tools.ts';

const at = temporaryFolder();
/** Most that the packed payload may have, in bytes. */
const MAX_PACKED_BYTES = 35 * 1024 * 1024;
/** A level that takes a second; the bound of the packed size is that of the default one. */
const QUICK_LEVEL = 3;
/** Sizes of a payload with the guest agent's bundle, in bytes, as they were measured last. */
const MEASURED_FILE = new URL('measured-size.json', import.meta.url).pathname;
/** From here on they are to be measured again, in bytes. */
const MAX_DRIFT_BYTES = 1024 * 1024;
const BUNDLE = new URL('../../../../apps/guest-agent/bundle/guest-agent.cjs', import.meta.url).pathname;

const agentFile = (): string => {
  writeFileSync(at('agent.mjs'), "console.log('agent', process.argv.slice(2).join(' '));\n");
  return at('agent.mjs');
};

/** A payload as nodes get it; where the agent was not bundled yet a small one stands for it, a thousandth of the whole less. */
const whole = () => ({ node: process.execPath, agent: existsSync(BUNDLE) ? BUNDLE : agentFile() });
const sizeIn = (folder: string): number => statSync(at(folder, PAYLOAD_FILE)).size;

type Jail = (root: string, argv: readonly string[]) => { readonly status: number | null; readonly stdout: string; readonly stderr: string };

const run = (command: string, args: readonly string[]): ReturnType<Jail> => {
  const { status, stdout, stderr } = spawnSync(command, args, { env: {}, encoding: 'utf8' });
  return { status, stdout, stderr };
};
const JAILS: readonly Jail[] = [
  (root, argv) => run('/usr/bin/bwrap', ['--unshare-all', '--clearenv', '--ro-bind', root, '/', '--', ...argv]),
  (root, argv) => run('/usr/sbin/chroot', [root, ...argv]),
];

/** What shows a program nothing of this machine's files. */
const jail = JAILS.find((inside) => inside('/', ['/bin/sh', '-c', 'exit 0']).status === 0);
const itInJail: (name: string, test: () => unknown) => void =
  jail === undefined
    ? (name) => it.skip(`${name} (neither bwrap nor chroot can be used)`, () => undefined)
    : (name, test) => it(name, test as () => void);
const inJail: Jail = (root, argv) => jail?.(root, argv) ?? { status: null, stdout: '', stderr: '' };

describe('the payload', () => {
  itInJail('runs where there is nothing else, with an empty environment, and starts itself again', async () => {
    const entries = await payloadEntries({ node: process.execPath, agent: agentFile() });
    await writePayload(entries, join(at('root'), PAYLOAD_MOUNT));
    const script = `
      const { spawnSync } = require('node:child_process');
      const again = spawnSync(process.execPath, ['-p', '6 * 7'], { env: {}, encoding: 'utf8' });
      const root = require('node:fs').readdirSync('/');
      console.log(JSON.stringify({ version: process.version, path: process.execPath, env: process.env, again: again.stdout, root }));`;
    const { stdout, stderr } = inJail(at('root'), [`${PAYLOAD_MOUNT}/bin/node`, '-e', script]);
    expect(stderr).toBe('');
    // Bubblewrap sets PWD itself.
    const { env, ...said } = JSON.parse(stdout);
    expect(Object.keys(env).filter((name) => name !== 'PWD')).toEqual([]);
    expect(said).toEqual({
      version: process.version,
      path: `${PAYLOAD_MOUNT}/bin/node`,
      again: '42\n',
      root: ['opt'],
    });
  });

  itInJail('says how the agent is started', async () => {
    const entries = await payloadEntries({ node: process.execPath, agent: agentFile() });
    await writePayload(entries, join(at('root'), PAYLOAD_MOUNT));
    const argv = readFileSync(join(at('root'), PAYLOAD_MOUNT, 'run'), 'utf8')
      .trim()
      .split('\n');
    expect(argv).toEqual(['/opt/firecrew/bin/node', '--max-semi-space-size=1', '/opt/firecrew/guest-agent.cjs']);
    expect(inJail(at('root'), [...argv, '--config-file', '/x'])).toEqual({ status: 0, stdout: 'agent --config-file /x\n', stderr: '' });
  });

  itWith('tar2sqfs')(
    'is one file system of at most 115 MiB before it is packed, the same each time',
    async () => {
      for (const name of ['one', 'two']) mkdirSync(at(name));
      const options = { node: process.execPath, agent: agentFile(), level: QUICK_LEVEL };
      const facts = await buildPayload({ ...options, target: at('one') });
      await buildPayload({ ...options, target: at('two') });
      expect(readFileSync(at('one', PAYLOAD_FILE)).equals(readFileSync(at('two', PAYLOAD_FILE)))).toBe(true);
      expect(facts).toMatchObject({ kind: 'payload', mountPoint: '/opt/firecrew', nodeVersion: process.version });
      expect(facts.unpackedBytes).toBeLessThan(MAX_PAYLOAD_BYTES);
      const found = await readSquashfs(at('one', PAYLOAD_FILE));
      expect(found.get('bin/node')).toMatchObject({ mode: 0o755, uid: 0, gid: 0 });
      expect(found.get('lib/ld.so')).toMatchObject({ mode: 0o755 });
      expect(found.get('guest-agent.cjs')?.text).toContain('agent');
    },
    120_000,
  );

  // The default level takes a minute: what it gave is kept, and holds for as long as the quick level gives the same.
  const onX64 =
    process.arch === 'x64' ? itWith('tar2sqfs') : (name: string) => it.skip(`${name} (it was measured on x86-64)`, () => undefined);
  onX64(
    'has at most 35 MiB when it is packed, by what was measured of it',
    async () => {
      mkdirSync(at('quick'));
      const { nodeVersion, unpackedBytes } = await buildPayload({ ...whole(), target: at('quick'), level: QUICK_LEVEL });
      const quickBytes = sizeIn('quick');
      if (process.env.FIRECREW_MEASURE_PAYLOAD !== undefined) {
        mkdirSync(at('packed'));
        await buildPayload({ ...whole(), target: at('packed') });
        const fresh = { nodeVersion, unpackedBytes, quickBytes, packedBytes: sizeIn('packed') };
        writeFileSync(MEASURED_FILE, `${JSON.stringify(fresh, null, 2)}\n`);
      }
      // cast: the lines above wrote it
      const measured = JSON.parse(readFileSync(MEASURED_FILE, 'utf8')) as Record<'quickBytes' | 'packedBytes', number> & {
        nodeVersion: string;
      };
      expect(measured.nodeVersion, 'measure the payload again with FIRECREW_MEASURE_PAYLOAD=1').toBe(nodeVersion);
      // What the quick level shows to have come since packs no better at the default one.
      expect(measured.packedBytes + Math.max(0, quickBytes - measured.quickBytes)).toBeLessThan(MAX_PACKED_BYTES);
      expect(Math.abs(quickBytes - measured.quickBytes)).toBeLessThan(MAX_DRIFT_BYTES);
    },
    600_000,
  );

  it('of something that is no program, or of an agent that is not there, is refused', async () => {
    const text = agentFile();
    expect(await payloadEntries({ node: text, agent: text }).catch(codeOf)).toBe('elf_malformed');
    expect(await payloadEntries({ node: at('none'), agent: text }).catch(codeOf)).toBe('source_unreadable');
    expect(await payloadEntries({ node: process.execPath, agent: at('none') }).catch(codeOf)).toBe('source_unreadable');
  });
});
