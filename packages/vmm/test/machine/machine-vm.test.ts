import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dialLink, LinkListener, type LinkSession } from '@firecrew/link';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GuestEndpoint } from '../../src/guest-endpoint/guest-endpoint.ts';
import type { BootSpec, VmExit } from '../../src/index.ts';
import { ConsoleTail } from '../../src/machine/console-tail.ts';
import { MachineVm } from '../../src/machine/machine-vm.ts';

const secret = Buffer.alloc(32, 7);

let folder = '';
let closers: (() => unknown)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-machine-'));
});
afterEach(async () => {
  for (const close of closers) close();
  closers = [];
  await rm(folder, { recursive: true, force: true });
});

/** A session to a guest that takes every request, tells which, and is told of the first. */
async function guest(requests: unknown[], onRequest: () => void): Promise<LinkSession> {
  const accepted = Promise.withResolvers<LinkSession>();
  const listener = new LinkListener({
    secret,
    generation: 1,
    onSession: accepted.resolve,
    onRefused: () => undefined,
    onStream: () => undefined,
  });
  const server = createServer((socket) => listener.accept(socket)).listen(join(folder, 's'));
  await once(server, 'listening');
  const socket = connect(join(folder, 's'));
  closers.push(
    () => socket.destroy(),
    () => server.close(),
  );
  await dialLink(socket, {
    secret,
    generation: 1,
    onStream: (stream, head) => {
      requests.push(head);
      stream.reply({ ok: true });
      stream.end();
      onRequest();
    },
  });
  return await accepted.promise;
}

/** The superblock of a disk, clean unless a journal is to be replayed. */
function disk(needsRecovery: boolean): Buffer {
  const bytes = Buffer.alloc(4096);
  bytes.writeUInt16LE(0xef53, 1024 + 0x38);
  bytes.writeUInt16LE(1, 1024 + 0x3a);
  bytes.writeUInt32LE(needsRecovery ? 0x2c6 : 0x2c2, 1024 + 0x60);
  return bytes;
}

describe('the disk of a VM that is to be kept', () => {
  const sealWith = async (needsRecovery: boolean) => {
    const scratch = join(folder, 'scratch.ext4');
    await writeFile(scratch, disk(needsRecovery));
    const requests: unknown[] = [];
    const exited = Promise.withResolvers<VmExit>();
    const session = await guest(requests, () => exited.resolve({ code: 0, signal: null, detail: 'guest_reset' }));
    const released: string[] = [];
    const machine = {
      console: new ConsoleTail(),
      exited: exited.promise,
      expectEnd: () => void released.push('expected'),
      kill: async () => void released.push('killed'),
      release: async () => {
        released.push('released');
        return [];
      },
    };
    const endpoint = {
      socketPath: '/s',
      liveSession: session,
      session: async () => session,
      fail: () => undefined,
      close: async () => undefined,
    };
    const spec = { vmId: 'vm-1', folder, attemptMarker: `marker-${folder.slice(-6)}` } as BootSpec;
    // cast: what of an endpoint a VM uses
    const vm = new MachineVm(spec, { endpoint: endpoint as unknown as GuestEndpoint, machine }, scratch, () =>
      Promise.reject(new Error('no rescue')),
    );
    return { sealed: vm.seal(), scratch, requests, released };
  };

  it('is given once the guest has removed what was its own, has ended, and left a clean file system', async () => {
    const { sealed, scratch, requests, released } = await sealWith(false);
    expect(await sealed).toBe(scratch);
    expect(requests).toEqual([{ t: 'shutdown', forget: ['/firecrew'] }]);
    expect(released).toEqual(['expected', 'released']);
  });

  it('is not given where its guest left a journal to replay', async () => {
    const { sealed } = await sealWith(true);
    await expect(sealed).rejects.toMatchObject({
      code: 'guest_unclean',
      id: 'vm-1',
      message: expect.stringContaining('its disk is unclean'),
    });
  });
});
