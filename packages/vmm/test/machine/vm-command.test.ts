import { execFile, spawn } from 'node:child_process';
import { chmod, chown, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { vmCommand } from '../../src/machine/vm-command.ts';

const OWNER = { uid: 20_001, gid: 20_002 };
const asRoot = it.skipIf(process.getuid?.() !== 0);
const needsRoot = process.getuid?.() === 0 ? '' : ' (only root gives a program another user)';

let folder = '';
let device = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-user-'));
  device = join(folder, 'kvm');
  await writeFile(device, '');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** What a shell says that is started like a VMM. */
async function say(script: string): Promise<string> {
  const { program, args, user } = await vmCommand('/bin/sh', ['-c', script], OWNER, device);
  return (await promisify(execFile)(program, [...args], { ...user, env: { MARK: 'kept' }, cwd: '/' })).stdout;
}

describe('the command of a VMM', () => {
  it('is the program itself without a user for it', async () => {
    expect(await vmCommand('/vmm', ['a'], undefined, device)).toEqual({ program: '/vmm', args: ['a'], user: {} });
  });

  asRoot(`reaches the device by its group, and the folder of the VM by the user's own${needsRoot}`, async () => {
    await chown(device, 0, 4242);
    await chmod(device, 0o660);
    // As a turn folder is: open to the group of its attempt alone.
    await chown(folder, 0, OWNER.gid);
    await chmod(folder, 0o710);
    expect(await say(`echo "$(id -u) $(id -g) $(id -G) $MARK"; : <> ${device} && echo opened`)).toBe(
      '20001 20002 20002 4242 kept\nopened\n',
    );
    await chmod(folder, 0o700);
  });

  asRoot.each([
    ['may only read it', 0o640, 4242],
    ["is root's", 0o660, 0],
  ])(`has the user's own group alone where that of the device %s${needsRoot}`, async (_, mode, gid) => {
    await chown(device, 0, gid);
    await chmod(device, mode);
    expect(await say('id -G')).toBe('20002\n');
  });

  asRoot(`keeps what it was given: the process and its descriptors${needsRoot}`, async () => {
    await chown(device, 0, 4242);
    await chmod(device, 0o660);
    const { program, args, user } = await vmCommand('/bin/sh', ['-c', 'echo $$; cat <&3'], OWNER, device);
    await writeFile(join(folder, 'passed'), 'by descriptor');
    const file = await open(join(folder, 'passed'));
    const child = spawn(program, [...args], { ...user, stdio: ['ignore', 'pipe', 'inherit', file.fd] });
    let text = '';
    for await (const part of child.stdout ?? []) text += String(part);
    await file.close();
    expect(text).toBe(`${child.pid}\nby descriptor`);
  });

  asRoot(`has the user alone where there is no device${needsRoot}`, async () => {
    expect(await vmCommand('/vmm', [], OWNER, undefined)).toEqual({ program: '/vmm', args: [], user: OWNER });
    expect(await vmCommand('/vmm', [], OWNER, join(folder, 'none'))).toEqual({ program: '/vmm', args: [], user: OWNER });
  });

  it('joins its group first, and is never started where that fails', async () => {
    const start = async (group: string): Promise<string> => {
      const { program, args } = await vmCommand('/bin/sh', ['-c', 'echo $$'], undefined, undefined, group);
      const child = spawn(program, [...args], { stdio: ['ignore', 'pipe', 'ignore'] });
      let text = '';
      for await (const part of child.stdout ?? []) text += String(part);
      return text.replace(`${child.pid}\n`, 'the same process');
    };
    await writeFile(join(folder, 'cgroup.procs'), '');
    expect(await start(folder)).toBe('the same process');
    expect(await readFile(join(folder, 'cgroup.procs'), 'utf8')).toBe('0\n');
    expect(await start(join(folder, 'absent'))).toBe('');
  });

  asRoot(`joins its group with the rights of root, and gives them up${needsRoot}`, async () => {
    await writeFile(join(folder, 'cgroup.procs'), '', { mode: 0o600 });
    const { program, args, user } = await vmCommand('/bin/sh', ['-c', 'id -u; id -G'], OWNER, undefined, folder);
    const { stdout } = await promisify(execFile)(program, [...args], { ...user, cwd: '/' });
    expect([stdout, await readFile(join(folder, 'cgroup.procs'), 'utf8')]).toEqual(['20001\n20002\n', '0\n']);
  });
});
