import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'vitest';
import { GuestEndpoint, MAX_GUEST_CONNECTIONS } from '../../src/index.ts';
import { until } from '../../src/testing/driver-rig.ts';

let folder = '';
let endpoint: GuestEndpoint;
const sockets: Socket[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-end-'));
  const spec = { vmId: 'vm', onStream: () => undefined, onRefused: () => undefined };
  endpoint = await GuestEndpoint.open(spec, join(folder, 's'), undefined);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await endpoint.close();
  await rm(folder, { recursive: true, force: true });
});

it('accepts every dial at once, however many a guest makes, and keeps only as many as it serves', async () => {
  // As many as the smallest limit of a kernel lets wait.
  const dials = 128;
  let closed = 0;
  for (let count = 0; count < dials; count += 1) {
    const socket = connect(join(folder, 's'));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed += 1;
    });
    sockets.push(socket);
  }
  // None is refused or left waiting by a full queue.
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await until('those above the bound are closed', () => closed >= dials - MAX_GUEST_CONNECTIONS);
});
