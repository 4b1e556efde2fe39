import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type PeerProxy, startSquid, startTinyproxy } from '../support/peer-proxies.ts';
import { type Helper, residentMib, startHelper } from '../support/processes.ts';
import { type BenchRow, measured, notMeasured } from '../support/row.ts';
import { memoryFolder } from '../support/sandbox.ts';
import { bestInTurn, timed } from '../support/timing.ts';

const PROCESS = new URL('../support/egress-process.ts', import.meta.url);
const TUNNELS = 1_500;
const AT_ONCE = 16;
const BYTES = 500_000_000;
const OPEN_TUNNELS = 2_000;
const IDLE_MAX_MIB = 200;
const ROUNDS = 3;

async function openTunnel(proxyPort: number, upstreamPort: number): Promise<Socket> {
  const socket = connect({ port: proxyPort, host: '127.0.0.1', noDelay: true });
  // Whoever waits for an answer hears of it; a socket that nobody reads any more may be reset.
  socket.on('error', () => {});
  socket.write(`CONNECT localhost:${upstreamPort} HTTP/1.1\r\nHost: localhost:${upstreamPort}\r\n\r\n`);
  const [answer]: Buffer[] = await once(socket, 'data');
  const [status = ''] = (answer?.toString('latin1') ?? '').split('\r\n');
  if (!/^HTTP\/1\.. 200/.test(status)) throw new Error(`no tunnel: ${status}`);
  return socket;
}

async function setUps(proxyPort: number, upstreamPort: number): Promise<void> {
  let left = TUNNELS;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      const socket = await openTunnel(proxyPort, upstreamPort);
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function download(proxyPort: number, upstreamPort: number): Promise<void> {
  const socket = await openTunnel(proxyPort, upstreamPort);
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  socket.write(`${BYTES}`);
  await once(socket, 'end');
  socket.destroy();
  if (bytes !== BYTES) throw new Error(`${bytes} bytes of ${BYTES} arrived`);
}

async function memoryOfTunnels(proxy: Helper, proxyPort: number, upstreamPort: number): Promise<BenchRow> {
  const before = residentMib(proxy.pid);
  const sockets = await Promise.all(Array.from({ length: OPEN_TUNNELS }, () => openTunnel(proxyPort, upstreamPort)));
  const grown = residentMib(proxy.pid) - before;
  for (const socket of sockets) socket.destroy();
  return measured(
    `egress: growth with ${OPEN_TUNNELS} open tunnels`,
    grown,
    'MiB',
    { atMost: IDLE_MAX_MIB },
    `${((grown * 1024) / OPEN_TUNNELS).toFixed(0)} KiB each`,
  );
}

const tunnelsPerSecond = (ms: number) => (TUNNELS * 1000) / ms;
const megabytesPerSecond = (ms: number) => BYTES / 1000 / ms;

/** Set-up and throughput beside a proxy of another make. */
async function besides(name: string, peer: PeerProxy, own: number, upstream: number, setUpAtLeast: number): Promise<BenchRow[]> {
  if (!peer.ok) return [notMeasured(`egress: set-up rate of ${name}`, 'x', peer.why)];
  const setUp = await bestInTurn(ROUNDS, timedSetUps(own, upstream), timedSetUps(peer.port, upstream));
  const flow = await bestInTurn(2, timedDownload(own, upstream), timedDownload(peer.port, upstream));
  const rate = `${name} ${tunnelsPerSecond(setUp.peer).toFixed(0)}/s`;
  return [
    measured(`egress: set-up rate of ${name}`, setUp.peer / setUp.ours, 'x', { atLeast: setUpAtLeast }, rate),
    measured(
      `egress: throughput of ${name}`,
      flow.peer / flow.ours,
      'x',
      undefined,
      `${name} ${megabytesPerSecond(flow.peer).toFixed(0)} MB/s`,
    ),
  ];
}

const timedSetUps = (to: number, upstream: number) => () => timed(() => setUps(to, upstream));
const timedDownload = (to: number, upstream: number) => () => timed(() => download(to, upstream));

/** Our proxy, with policy, address check and audit file, against a bare relay, and against tinyproxy and squid with a filter and a log. */
export async function egressSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  const upstream = await startHelper(PROCESS, ['upstream']);
  const port = Number(upstream.ready.port);
  const proxy = await startHelper(PROCESS, ['proxy', join(folder.path, 'audit'), String(port)]);
  const relay = await startHelper(PROCESS, ['relay']);
  await chmod(folder.path, 0o711);
  const tiny = await startTinyproxy(join(folder.path, 'tinyproxy'), port);
  const squid = await startSquid(join(folder.path, 'squid'), port);
  try {
    const [own, bare] = [Number(proxy.ready.port), Number(relay.ready.port)];
    const memory = await memoryOfTunnels(proxy, own, port);
    const setUp = await bestInTurn(ROUNDS, timedSetUps(own, port), timedSetUps(bare, port));
    const flow = await bestInTurn(ROUNDS, timedDownload(own, port), timedDownload(bare, port));
    return [
      measured('egress: tunnels', tunnelsPerSecond(setUp.ours), '/s', undefined, `relay ${tunnelsPerSecond(setUp.peer).toFixed(0)}/s`),
      measured('egress: set-up rate of a bare relay', setUp.peer / setUp.ours, 'x'),
      measured(
        'egress: one tunnel',
        megabytesPerSecond(flow.ours),
        'MB/s',
        undefined,
        `relay ${megabytesPerSecond(flow.peer).toFixed(0)} MB/s`,
      ),
      measured('egress: throughput of a bare relay', flow.peer / flow.ours, 'x', { atLeast: 0.85 }),
      memory,
      ...(await besides('tinyproxy', tiny, own, port, 1)),
      ...(await besides('squid', squid, own, port, 0.7)),
    ];
  } finally {
    for (const peer of [tiny, squid]) if (peer.ok) await peer.stop();
    for (const helper of [proxy, relay, upstream]) await helper.stop();
    await folder.remove();
  }
}
