// The sending process of the link's bench: `link-sender.ts raw|link SOCKET BYTES`.
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Writable } from 'node:stream';
import { dialLink } from '@firecrew/link';

const CHUNK_BYTES = 65_536;

async function pour(target: Writable, bytes: number): Promise<void> {
  const chunk = Buffer.alloc(CHUNK_BYTES, 'x');
  for (let left = bytes; left > 0; left -= CHUNK_BYTES)
    if (!target.write(left < CHUNK_BYTES ? chunk.subarray(0, left) : chunk)) await once(target, 'drain');
  target.end();
}

// Its bench is gone.
process.once('disconnect', () => process.exit());
const [mode, path = '', bytes = '0'] = process.argv.slice(2);
const socket = connect(path);
await once(socket, 'connect');
process.send?.({});
if (mode === 'raw') await pour(socket, Number(bytes));
else {
  const session = await dialLink(socket, {
    secret: new Uint8Array(32).fill(7),
    generation: 1,
    onStream: (stream) => stream.reset('not_served'),
  });
  const stream = session.open({ kind: 'pour' });
  await stream.peerHead;
  await pour(stream, Number(bytes));
}
