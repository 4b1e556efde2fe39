import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { processesOf, sendSignal } from './support/processes.ts';
import { filesAt, git, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';
import { testVmStore } from './support/vm-store.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n' };
const FIXED = 'module.exports = (a, b) => a + b;\n';
/** A probe boot and two VMs; emulated on a busy machine each may take half a minute. */
const COMMAND_MS = 400_000;

const store = await testVmStore();
const missing = 'missing' in store ? ` (not run: ${store.missing})` : '';

describe.skipIf(missing !== '')(`the command with VMs of QEMU under emulation${missing}`, { timeout: COMMAND_MS }, () => {
  let command: Command;
  beforeAll(async () => {
    if ('missing' in store) throw new Error(store.missing);
    command = await Command.make({ FIRECREW_QEMU_ACCELERATOR: 'tcg' });
    expect(await command.run(['image', 'list'])).toMatchObject({ code: 0 });
    await cp(store.root, join(command.home, 'images'), { recursive: true });
  }, COMMAND_MS);
  afterAll(async () => await command.stop(), COMMAND_MS);

  const machines = () => processesOf(command.home).filter((seen) => seen.command.includes('qemu-system'));

  it('leaves no VM and no folder of a self-test that is told to end in the middle of it', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const doctor = command.start(['doctor', '--vm-selftest']);
      await until('the VM of the self-test', () => machines()[0], COMMAND_MS);
      sendSignal(doctor.pid, signal);
      expect(await doctor.ended).toMatchObject({ code: 3, stdout: '', stderr: expect.stringContaining('giving up') });
      expect(processesOf(command.home)).toEqual([]);
      expect(await readdir(join(command.home, 'node/selftest'))).toEqual([]);
      expect((await readdir(join(command.home, 'run'))).filter((name) => name.startsWith('selftest'))).toEqual([]);
    }
  });

  it('runs a mission in them as it does in processes, and makes its branch', async () => {
    const folder = await makeRepository(join(command.folder, 'repository'), FILES);
    const agent = `test "$(id -u)" = 1000 || exit 9; ls /sys/class/net; echo '${FIXED.trim()}' > add.js`;
    const args = ['run', '--driver', 'qemu', '--repo', folder, '--task', 'mend it', '--check', 'node test.js', '--agent-cmd', agent];
    const end = await command.json(args);
    expect(end, await command.log('node-agent.log')).toMatchObject({ exitCode: 0, outcome: { kind: 'completed' }, isolation: 'vm' });
    const [branch = ''] = (await git(folder, 'for-each-ref', '--format=%(refname)', 'refs/heads/firecrew')).trim().split('\n');
    expect(await filesAt(folder, branch)).toEqual({ ...FILES, 'add.js': FIXED });
    expect(machines()).toEqual([]);
  });
});
