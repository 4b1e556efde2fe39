import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dialLink, type LinkStream } from '@firecrew/link';
import { GENERATION } from '@firecrew/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BootSpec, VmExit } from '../../src/index.ts';
import { bootMachine } from '../../src/machine/boot-machine.ts';
import { ConsoleTail } from '../../src/machine/console-tail.ts';

const HEALTHY = { ok: true, generation: GENERATION, proxy: { up: true, port: 3128, error: null }, execs: 0 };

let folder = '';
const sockets: Socket[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-boot-'));
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await rm(folder, { recursive: true, force: true });
});

type Serve = (stream: LinkStream, socket: Socket, end: (exit: VmExit) => void) => unknown;
const healthy: Serve = (stream) => {
  stream.reply({ ...HEALTHY, model: HEALTHY.proxy });
  stream.end();
};

/** Boots a machine whose guest does what is given with the first stream of each of its dials, one after the other; and how that ends. */
async function boot(serves: readonly Serve[], over: { readonly timeoutMs?: number; readonly onLinkUp?: () => void } = {}) {
  const exited = Promise.withResolvers<VmExit>();
  const linkSocket = join(folder, 's');
  const dial = async (secret: Buffer): Promise<void> => {
    for (const serve of serves) {
      const socket = connect(linkSocket);
      sockets.push(socket);
      const onStream = (stream: LinkStream) => serve(stream, socket, exited.resolve);
      const session = await dialLink(socket, { secret, generation: GENERATION, onStream });
      await session.closed;
    }
  };
  await writeFile(join(folder, 'shared'), 'shared');
  const handle = await open(join(folder, 'shared'));
  const spec: BootSpec = {
    vmId: 'vm-1',
    folder,
    guestAgent: { node: '/unused', bundle: '/unused' },
    bindPaths: [],
    path: '/bin',
    caBundle: null,
    limits: { memoryMib: 256, diskMib: 64 },
    allowUnisolated: false,
    attemptMarker: 'attempt.1',
    onStream: () => undefined,
    onRefused: () => undefined,
    ...(over.onLinkUp === undefined ? {} : { onLinkUp: over.onLinkUp }),
  };
  const done: string[] = [];
  const booted = bootMachine(spec, {
    files: { initrd: { name: 'initrd', sha256: '', path: join(folder, 'shared'), handle, sizeBytes: 6 }, path: '/bin', environment: {} },
    linkSocket,
    resync: false,
    initrd: join(folder, 'initrd'),
    timeoutMs: over.timeoutMs ?? 60_000,
    group: undefined,
    start: async () => {
      const config = /"secret":"([0-9a-f]+)"/.exec(await readFile(join(folder, 'initrd'), 'latin1'))?.[1] ?? '';
      void dial(Buffer.from(config, 'hex')).catch(() => undefined);
      return {
        console: new ConsoleTail(),
        exited: exited.promise,
        expectEnd: () => undefined,
        kill: async () => void done.push('killed'),
        release: async () => {
          done.push('released');
          return [];
        },
      };
    },
  });
  booted.then(({ endpoint }) => endpoint.close()).catch(() => undefined);
  await booted.catch(() => undefined);
  await handle.close();
  return { booted, done };
}

describe('a machine', () => {
  it('is booted when its guest agent has answered, which may be on a second link; the first one is told', async () => {
    let links = 0;
    const { booted, done } = await boot([(_stream, socket) => socket.destroy(), healthy], { onLinkUp: () => (links += 1) });
    await expect(booted).resolves.toBeDefined();
    expect([links, done]).toEqual([1, []]);
  });

  it('whose guest agent has a link and says nothing is given up when the time of the boot is over', async () => {
    const { booted, done } = await boot([() => undefined], { timeoutMs: 200 });
    await expect(booted).rejects.toMatchObject({ code: 'vm_boot_hung', message: expect.stringContaining('200 ms') });
    expect(done).toEqual(['killed', 'released']);
  });

  it('whose guest ends after its link was up is told by what ended it, and not by the link that went with it', async () => {
    const panic: Serve = (_stream, socket, end) => {
      socket.destroy();
      setTimeout(() => end({ code: 0, signal: null, cause: 'guest_panic', detail: 'guest_panic' }), 50);
    };
    const { booted, done } = await boot([panic]);
    await expect(booted).rejects.toMatchObject({ code: 'vm_panicked_at_boot' });
    expect(done).toEqual(['killed', 'released']);
  });

  it('whose guest agent answers with something else is given up at once', async () => {
    const { booted } = await boot([(stream) => stream.reply({ ok: 'perhaps' })]);
    await expect(booted).rejects.toMatchObject({ code: 'guest_reply_invalid' });
  });
});
