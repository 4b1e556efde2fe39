import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identifyProcess } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Jail } from '../../src/firecracker-driver/jail.ts';
import { adoptVmm, spawnVmm, type VmmProcess } from '../../src/firecracker-driver/vmm-process.ts';

let folder = '';
let jail: Jail;
const running: VmmProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-proc-'));
  jail = { id: 'fc0123456789abcdef-00000001', chrootBase: folder, root: folder, pidFile: join(folder, 'firecracker.pid') };
});
afterEach(async () => {
  for (const one of running.splice(0)) await one.kill();
  await rm(folder, { recursive: true, force: true });
});

/** A jailer that is a shell script; `$FILE` is where it writes the id of the process. */
async function adopt(script: string): Promise<VmmProcess> {
  const env = { FILE: jail.pidFile, PATH: '/usr/bin:/bin' };
  const adopted = await adoptVmm('/bin/sh', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] }, jail);
  running.push(adopted);
  return adopted;
}

/** Leaves a process with the command line of a jailed Firecracker. */
const LEAVES = (id: string): string => {
  const waits = `/bin/sh -c 'read line < "$0.fifo"' "$FILE" --id ${id} --api-sock /a`;
  // Until it has become that program, its command line is still that of this shell.
  const has = `until grep -qz -- '^--id$' /proc/$!/cmdline; do :; done; echo -n $! > "$FILE"`;
  return `mkfifo -- "$FILE.fifo"; ${waits} </dev/null >/dev/null 2>&1 & ${has}`;
};

describe('a Firecracker that is no child of ours', () => {
  it('is taken from the file of its jail, watched, and killed', async () => {
    const vmm = await adopt(LEAVES(jail.id));
    const text = await readFile(jail.pidFile, 'utf8');
    expect(identifyProcess(Number(text))).toBeDefined();
    await vmm.kill();
    expect(await vmm.exited).toBe(null);
    expect(identifyProcess(Number(text))).toBe(undefined);
  });

  it('is not any process that the file names, which is left alone', async () => {
    const other = spawn('/bin/sleep', ['60']);
    try {
      await expect(adopt(`echo -n ${other.pid} > "$FILE"`)).rejects.toMatchObject({ code: 'jail_failed' });
      expect(identifyProcess(other.pid ?? 0)).toBeDefined();
    } finally {
      other.kill('SIGKILL');
    }
  });

  it('is not that of another jail, which is left alone', async () => {
    await expect(adopt(LEAVES('fc0123456789abcdef-00000002'))).rejects.toMatchObject({ code: 'jail_failed' });
    const pid = Number(await readFile(jail.pidFile, 'utf8'));
    expect(identifyProcess(pid)).toBeDefined();
    process.kill(pid, 'SIGKILL');
  });

  it.each([
    ['is gone already', 'sleep 0 & wait $!; echo -n $! > "$FILE"', 'the jailer started nothing'],
    ['was never started', 'echo no such user >&2; exit 1', 'the jailer started nothing: no such user'],
  ])('that %s fails the start at once', async (_, script, words) => {
    const from = performance.now();
    await expect(adopt(script)).rejects.toMatchObject({ code: 'jail_failed', message: expect.stringContaining(words) });
    expect(performance.now() - from).toBeLessThan(5000);
  });
});

describe('a Firecracker that is a child of ours', () => {
  const options = { stdio: ['ignore', 'pipe', 'pipe'], env: {} } as { stdio: ['ignore', 'pipe', 'pipe']; env: Record<string, string> };

  it('ends with its exit code or signal', async () => {
    expect(await spawnVmm('/bin/sh', ['-c', 'exit 148'], options).exited).toEqual({ code: 148, signal: null });
    const vmm = spawnVmm('/bin/sleep', ['60'], options);
    await vmm.kill();
    expect(await vmm.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('has a bounded memory of what it said, fit for a message', async () => {
    const vmm = spawnVmm('/bin/sh', ['-c', 'head -c 100000 /dev/zero | tr "\\0" x; printf "\\033[31m the end" >&2'], options);
    await vmm.exited;
    const said = vmm.messages();
    expect(said.length).toBeLessThanOrEqual(400);
    expect(said).toMatch(/^[\x20-\x7e]*$/);
  });

  it('that cannot be started says why', async () => {
    const vmm = spawnVmm('/no/such/program', [], options);
    expect(await vmm.exited).toEqual({ code: null, signal: null });
    expect(vmm.messages()).toContain('ENOENT');
  });
});
