import { readdirSync } from 'node:fs';
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

  it('is fine where a VM ran and left nothing', () => {
    expect(findingsOf([{ driver: 'firecracker', ok: true, detail: 'up after 200 ms' }])).toEqual([
      { check: 'vm firecracker', state: 'ok', detail: 'up after 200 ms', fix: null },
    ]);
  });
});
