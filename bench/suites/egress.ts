import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Helper, residentMib, startHelper } from '../support/processes.ts';
import { type BenchRow, measured, notMeasured } from '../support/row.ts';
import { memoryFolder } from '../support/sandbox.ts';
import { bestInTurn, timed } from '../support/timing.ts';
import { startTinyproxy } from '../support/tinyproxy.ts';

const PROCESS = new URL('../support/egress-process.ts', import.meta.url);
const TUNNELS = 1_500;
const AT_ONCE = 16;
const BYTES = 500_000_000;
const OPEN_TUNNELS = 1_000;

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
    undefined,
    `${((grown * 1024) / OPEN_TUNNELS).toFixed(0)} KiB each`,
  );
}

/** Our proxy, with policy, address check and audit file, against tinyproxy with a filter and a log, and against a bare relay. */
export async function egressSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  await mkdir(join(folder.path, 't'));
  const upstream = await startHelper(PROCESS, ['upstream']);
  const port = Number(upstream.ready.port);
  const proxy = await startHelper(PROCESS, ['proxy', join(folder.path, 'audit'), String(port)]);
  const relay = await startHelper(PROCESS, ['relay']);
  const tiny = await startTinyproxy(join(folder.path, 't'), port);
  try {
    const [own, bare] = [Number(proxy.ready.port), Number(relay.ready.port)];
    const setUp = (to: number) => () => timed(() => setUps(to, port));
    const flow = (to: number) => () => timed(() => download(to, port));
    const memory = await memoryOfTunnels(proxy, own, port);
    const toRelay = await bestInTurn(3, setUp(own), setUp(bare));
    const flowToRelay = await bestInTurn(3, flow(own), flow(bare));
    const tunnels = (ms: number) => (TUNNELS * 1000) / ms;
    const rate = (ms: number) => BYTES / 1000 / ms;
    const rows = [
      measured('egress: tunnels', tunnels(toRelay.ours), '/s', undefined, `relay ${tunnels(toRelay.peer).toFixed(0)}/s`),
      measured('egress: set-up rate of a bare relay', toRelay.peer / toRelay.ours, 'x'),
      measured('egress: one tunnel', rate(flowToRelay.ours), 'MB/s', undefined, `relay ${rate(flowToRelay.peer).toFixed(0)} MB/s`),
      measured('egress: throughput of a bare relay', flowToRelay.peer / flowToRelay.ours, 'x', { atLeast: 0.8 }),
      memory,
    ];
    if (!tiny.ok) return [...rows, notMeasured('egress: set-up rate of tinyproxy', 'x', tiny.why)];
    const toTiny = await bestInTurn(3, setUp(own), setUp(tiny.port));
    const flowToTiny = await bestInTurn(2, flow(own), flow(tiny.port));
    return [
      ...rows,
      measured(
        'egress: set-up rate of tinyproxy',
        toTiny.peer / toTiny.ours,
        'x',
        { atLeast: 1 },
        `tinyproxy ${tunnels(toTiny.peer).toFixed(0)}/s`,
      ),
      measured(
        'egress: throughput of tinyproxy',
        flowToTiny.peer / flowToTiny.ours,
        'x',
        undefined,
        `tinyproxy ${rate(flowToTiny.peer).toFixed(0)} MB/s`,
      ),
    ];
  } finally {
    if (tiny.ok) await tiny.stop();
    for (const helper of [proxy, relay, upstream]) await helper.stop();
    await folder.remove();
  }
}
