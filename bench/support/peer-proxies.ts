import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

/** A proxy of another make on a loopback port of the bench's own, or why there is none. */
export type PeerProxy = { readonly ok: true; readonly port: number; stop(): Promise<void> } | { readonly ok: false; readonly why: string };

const START_TRIES = 500;
const TRY_EVERY_MS = 10;

/** Starts tinyproxy with an allow-list of one name and a log, which is the work our proxy does. */
export async function startTinyproxy(folder: string, upstreamPort: number): Promise<PeerProxy> {
  const port = await freePort();
  const at = (name: string) => join(folder, name);
  await mkdir(folder);
  await writeFile(at('allowed'), '^localhost$\n');
  const lines = [
    `Port ${port}`,
    'Listen 127.0.0.1',
    'Timeout 600',
    'MaxClients 2000',
    `LogFile "${at('tinyproxy.log')}"`,
    'LogLevel Connect',
    `Filter "${at('allowed')}"`,
    'FilterDefaultDeny Yes',
    `ConnectPort ${upstreamPort}`,
  ];
  await writeFile(at('tinyproxy.conf'), `${lines.join('\n')}\n`);
  return await startPeer('tinyproxy', ['-d', '-c', at('tinyproxy.conf')], port);
}

/** The same with squid: one process, nothing cached, one name and one port allowed, an access log. */
export async function startSquid(folder: string, upstreamPort: number): Promise<PeerProxy> {
  const port = await freePort();
  const at = (name: string) => join(folder, name);
  await mkdir(folder);
  // Started by root it becomes an account of its own, which writes its logs there.
  await chmod(folder, 0o777);
  const lines = [
    `http_port 127.0.0.1:${port}`,
    'acl named dstdomain localhost',
    `acl served port ${upstreamPort}`,
    'acl tunnel method CONNECT',
    'http_access allow tunnel named served',
    'http_access deny all',
    'cache deny all',
    'memory_pools off',
    'max_filedescriptors 8192',
    'shutdown_lifetime 0 seconds',
    'pinger_enable off',
    'netdb_filename none',
    `access_log stdio:${at('access.log')}`,
    `cache_log ${at('cache.log')}`,
    `pid_filename ${at('squid.pid')}`,
    `coredump_dir ${folder}`,
  ];
  await writeFile(at('squid.conf'), `${lines.join('\n')}\n`);
  return await startPeer('squid', ['-N', '-f', at('squid.conf')], port);
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return address !== null && typeof address === 'object' ? address.port : 0;
}

async function startPeer(program: string, args: readonly string[], port: number): Promise<PeerProxy> {
  const child = spawn(program, args, { stdio: 'ignore' });
  const failed = new Promise<string>((resolve) => {
    child.once('error', () => resolve(`${program} is not installed`));
    child.once('exit', () => resolve(`${program} did not start`));
  });
  const stop = async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  for (let tries = 0; tries < START_TRIES; tries += 1) {
    const up = await Promise.race([answers(port), failed]);
    if (typeof up === 'string') return { ok: false, why: up };
    if (up) return { ok: true, port, stop };
    await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
  }
  await stop();
  return { ok: false, why: `${program} did not answer` };
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isUp = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isUp;
}
