import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { LinkListener } from '@firecrew/link';
import { startHelper } from '../support/processes.ts';
import { type BenchRow, measured } from '../support/row.ts';
import { memoryFolder } from '../support/sandbox.ts';
import { bestInTurn } from '../support/timing.ts';

const BYTES = 400_000_000;
const SENDER = new URL('../support/link-sender.ts', import.meta.url);

async function drain(stream: Readable): Promise<void> {
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(stream, 'end');
  if (bytes !== BYTES) throw new Error(`${bytes} bytes of ${BYTES} arrived`);
}

/** Time from the first to the last byte of one transfer out of another process, in `ms`. */
async function transfer(mode: 'raw' | 'link', path: string): Promise<number> {
  const secret = new Uint8Array(32).fill(7);
  const arrived = Promise.withResolvers<Readable>();
  const listener = new LinkListener({
    secret,
    generation: 1,
    onSession: () => undefined,
    onRefused: ({ message }) => arrived.reject(new Error(message)),
    onStream: (stream) => {
      stream.reply({ ok: true });
      arrived.resolve(stream);
    },
  });
  const onSocket = (socket: Socket) => (mode === 'raw' ? arrived.resolve(socket) : listener.accept(socket));
  const server: Server = createServer(onSocket).listen(path);
  await once(server, 'listening');
  const helper = await startHelper(SENDER, [mode, path, String(BYTES)]);
  try {
    const stream = await arrived.promise;
    const from = performance.now();
    await drain(stream);
    return performance.now() - from;
  } finally {
    await helper.stop();
    server.close();
  }
}

/** One stream of the guest link over a Unix socket between two processes, against the bare socket. */
export async function linkSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  try {
    const best = await bestInTurn(
      4,
      () => transfer('link', join(folder.path, 'l')),
      () => transfer('raw', join(folder.path, 'r')),
    );
    const rate = (ms: number) => BYTES / 1000 / ms;
    return [
      measured('link: one way', rate(best.ours), 'MB/s'),
      measured('link: speed of the bare socket', best.peer / best.ours, 'x', undefined, `socket ${rate(best.peer).toFixed(0)} MB/s`),
    ];
  } finally {
    await folder.remove();
  }
}
