import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

/** A tinyproxy of the bench's own on a loopback port, or why there is none. */
export type Tinyproxy = { readonly ok: true; readonly port: number; stop(): Promise<void> } | { readonly ok: false; readonly why: string };

/** Starts tinyproxy with an allow-list of one name and a log, which is the work our proxy does. */
export async function startTinyproxy(folder: string, upstreamPort: number): Promise<Tinyproxy> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  probe.close();
  await once(probe, 'close');
  const at = (name: string) => join(folder, name);
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
  const child = spawn('tinyproxy', ['-d', '-c', at('tinyproxy.conf')], { stdio: 'ignore' });
  const failed = new Promise<string>((resolve) => {
    child.once('error', () => resolve('tinyproxy is not installed'));
    child.once('exit', () => resolve('tinyproxy did not start'));
  });
  for (let tries = 0; tries < 200; tries += 1) {
    const socket = connect(port, '127.0.0.1');
    const up = await Promise.race([
      once(socket, 'connect').then(
        () => true,
        () => false,
      ),
      failed,
    ]);
    socket.destroy();
    if (typeof up === 'string') return { ok: false, why: up };
    if (up) {
      return {
        ok: true,
        port,
        stop: async () => {
          child.kill('SIGKILL');
          if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
        },
      };
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  child.kill('SIGKILL');
  return { ok: false, why: 'tinyproxy did not answer' };
}
