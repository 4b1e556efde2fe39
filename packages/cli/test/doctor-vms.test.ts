import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { findingsOf } from '../src/commands/doctor-vms.ts';
import { TestHome } from './command.ts';

const home = new TestHome();
afterAll(async () => await home.remove());

const findingsSchema = z.array(z.object({ check: z.string(), state: z.string(), detail: z.string(), fix: z.string().nullable() }));

/** What the doctor says of VMs, and its exit code. */
async function selftest(env: Record<string, string> = {}) {
  Object.assign(home.env, env);
  try {
    const { code, stdout } = await home.run('doctor', '--vm-selftest', '--json');
    return { code, findings: findingsSchema.parse(JSON.parse(stdout)).filter(({ check }) => check.startsWith('vm')) };
  } finally {
    for (const name of Object.keys(env)) delete home.env[name];
  }
}

describe('the self-test of VMs', () => {
  it('is a problem where there is no home, and where the settings name no driver', async () => {
    expect(await selftest()).toMatchObject({
      code: 1,
      findings: [{ check: 'vm', state: 'problem', detail: expect.stringContaining('no home') }],
    });
    await home.run('image', 'list');
    expect(await selftest()).toMatchObject({
      code: 1,
      findings: [{ check: 'vm', state: 'problem', detail: expect.stringContaining('name no driver of microVMs'), fix: expect.any(String) }],
    });
  });

  it('says of each driver of the settings what is missing, and leaves nothing in the home', async () => {
    const { code, findings } = await selftest({ FIRECREW_QEMU_ACCELERATOR: 'tcg', FIRECREW_FIRECRACKER_PROGRAM: '/opt/firecracker' });
    expect(code).toBe(1);
    expect(findings).toMatchObject([
      { check: 'vm qemu', state: 'problem', detail: expect.stringContaining('has nothing named kernel') },
      { check: 'vm firecracker', state: 'problem', detail: expect.stringContaining('has nothing named kernel') },
    ]);
    expect(readdirSync(join(home.root, 'run')).filter((name) => name.startsWith('selftest'))).toEqual([]);
  });

  it('is not run without being asked for', async () => {
    const { stdout } = await home.run('doctor', '--json');
    expect(findingsSchema.parse(JSON.parse(stdout)).map(({ check }) => check)).not.toContain('vm');
  });

  it('is told from the programs that it needs, which are looked at each time: a problem where the settings want them', async () => {
    const look = async (env: Record<string, string>) => {
      const { stdout } = await home.start(['doctor', '--json'], { env }).ended;
      return findingsSchema.parse(JSON.parse(stdout)).filter(({ check }) => check === 'qemu' || check === 'image tools');
    };
    const folder = join(home.folder, 'programs');
    mkdirSync(folder);
    const program = (name: string, script: string): void => writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    for (const name of ['mke2fs', 'tar2sqfs', 'tar', 'xz']) program(name, 'echo ok');
    program('qemu', 'echo QEMU emulator version 9.1.0');
    const settings = join(home.root, 'config.json');
    writeFileSync(settings, JSON.stringify({ qemu: { accelerator: 'tcg', program: join(folder, 'qemu') } }));
    const PATH = `${folder}:${home.env.PATH}`;
    const env = { PATH, FIRECREW_CALLER_PATH: PATH };
    expect(await look(env)).toEqual([
      { check: 'qemu', state: 'ok', detail: 'QEMU emulator version 9.1.0', fix: null },
      { check: 'image tools', state: 'ok', detail: 'mke2fs, tar2sqfs, tar, xz run', fix: null },
    ]);
    program('qemu', 'echo "a library is missing" >&2; exit 127');
    program('tar2sqfs', 'exit 1');
    const states = async () => (await look(env)).map(({ state, detail }) => `${state}: ${detail}`);
    const broken = [
      expect.stringMatching(/^problem: not usable, needed for microVMs of the qemu driver: Command failed: /),
      expect.stringMatching(/^problem: not usable, needed for images and disks of microVMs: tar2sqfs \(Command failed: [^,]*\)$/),
    ];
    expect(await states()).toEqual(broken);
    writeFileSync(settings, JSON.stringify({ qemu: { program: join(folder, 'qemu') } }));
    expect((await states()).map((line) => line.split(':')[0])).toEqual(['warning', 'warning']);
    rmSync(settings);
  });

  it('is fine where a VM ran and left nothing', () => {
    expect(findingsOf([{ driver: 'firecracker', ok: true, detail: 'up after 200 ms' }])).toEqual([
      { check: 'vm firecracker', state: 'ok', detail: 'up after 200 ms', fix: null },
    ]);
  });
});
