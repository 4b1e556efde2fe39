import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { run } from './processes.ts';

/** An ssh server of the bench's own on a loopback port, or why there is none. */
export type SshServer =
  | { readonly ok: true; readonly args: readonly string[]; stop(): Promise<void> }
  | { readonly ok: false; readonly why: string };

const SSHD = '/usr/sbin/sshd';
/** Where sshd, run by root, demands a folder. */
const PRIVILEGE_FOLDER = '/run/sshd';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address !== null && typeof address === 'object' ? address.port : 0;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return await new Promise((resolve) => {
    socket.once('data', () => resolve(true)).once('error', () => resolve(false));
  }).then((result) => {
    socket.destroy();
    return result === true;
  });
}

/** Starts sshd with keys made for this run, in a folder of the bench. */
export async function startSshd(folder: string): Promise<SshServer> {
  if (!existsSync(SSHD)) return { ok: false, why: 'sshd is not installed' };
  if (process.getuid?.() === 0 && !existsSync(PRIVILEGE_FOLDER)) return { ok: false, why: `${PRIVILEGE_FOLDER} is not there` };
  const at = (name: string) => join(folder, 'ssh', name);
  try {
    await mkdir(at(''), { mode: 0o700 });
    for (const name of ['host', 'user']) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)]);
    await copyFile(at('user.pub'), at('authorized'));
    await chmod(at('authorized'), 0o600);
    const port = await freePort();
    await writeFile(
      at('config'),
      `Port ${port}\nListenAddress 127.0.0.1\nHostKey ${at('host')}\nAuthorizedKeysFile ${at('authorized')}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n`,
    );
    const child = spawn(SSHD, ['-D', '-f', at('config')], { stdio: 'ignore' });
    for (let tries = 0; !(await answers(port)); tries += 1) {
      if (child.exitCode !== null || tries > 200) return { ok: false, why: 'sshd did not start' };
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const options = ['BatchMode=yes', 'StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'IdentitiesOnly=yes'];
    const args = [
      '-F',
      '/dev/null',
      '-p',
      String(port),
      '-i',
      at('user'),
      ...options.flatMap((option) => ['-o', option]),
      `${userInfo().username}@127.0.0.1`,
    ];
    const stop = async () => {
      child.kill();
      if (child.exitCode === null) await once(child, 'exit');
    };
    return { ok: true, args, stop };
  } catch (error) {
    return { ok: false, why: `sshd could not be set up: ${error instanceof Error ? error.message : String(error)}` };
  }
}
