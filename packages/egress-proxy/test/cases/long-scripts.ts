import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { EGRESS_PROXY_LIMITS } from '../../src/index.ts';
import { makeClient, openTunnel, statusOf, tunnelBytes, until } from '../harness.ts';
import { head, RAW, refused, withHarness } from './with-harness.ts';

/** Minutes of a case pass in this share of their time: the limits are arguments, so the idle limit shrinks with them. */
const SPEED = 1000;
const MINUTE_MS = 60_000 / SPEED;
const IDLE_MS = EGRESS_PROXY_LIMITS.idleMs / SPEED;
const MIB = 1024 * 1024;
const CERT = readFileSync(new URL('../tls/test-only-cert.pem', import.meta.url));
const KEY = readFileSync(new URL('../tls/test-only-key.pem', import.meta.url));
/** Opcodes of a final frame, and the mask that a client sets. */
const PING = 0x89;
const PONG = 0x8a;
const MASKED = 0x80;

/** A relay as a guest may run one: it takes connections of others and passes their bytes on to the proxy. */
const RELAY_PROCESS = `const net = require('node:net');
const server = net.createServer((guest) => {
  const onward = net.connect(Number(process.argv[1]), '127.0.0.1');
  for (const socket of [guest, onward]) socket.on('error', () => undefined);
  guest.pipe(onward).pipe(guest);
}).listen(0, '127.0.0.1', () => console.log(server.address().port));`;

/** Waits until a stream takes bytes again, or never will. */
function takesMore(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}

/** What takes long, or much, where a guest does it for real. */
export const LONG: Readonly<Record<string, () => Promise<void>>> = {
  'tunnel idle for 10 minutes, then traffic goes on': async () => {
    const limits = { idleMs: IDLE_MS, headMs: 5 * MINUTE_MS };
    await withHarness({ allow: RAW, limits, upstream: (socket) => socket.pipe(socket) }, async (harness) => {
      const client = await openTunnel(harness);
      await pause(10 * MINUTE_MS);
      client.socket.write('an answer after a long thought');
      await until(() => tunnelBytes(client).toString() === 'an answer after a long thought', 'the echo');
    });
  },
  'download of 200 MB by a reader that takes 100 KB per second': async () => {
    const size = 200_000_000;
    const piece = randomBytes(100_000);
    let handedOver = 0;
    const upstream = async (socket: Socket) => {
      while (handedOver < size && !socket.destroyed) {
        handedOver += piece.length;
        if (!socket.write(piece)) await takesMore(socket);
      }
      socket.end();
    };
    await withHarness({ allow: RAW, upstream: (socket) => void upstream(socket) }, async (harness) => {
      const socket = connect(harness.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(head('api.example.test'));
      let read = 0;
      let held = 0;
      let answer = Buffer.alloc(0);
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        const wasAnswered = answer.includes('\r\n\r\n');
        if (!wasAnswered) answer = Buffer.concat([answer, chunk]);
        const body = wasAnswered ? chunk : answer.subarray(answer.indexOf('\r\n\r\n') + 4);
        for (let at = 0; at < body.length; ) {
          const offset = (read + at) % piece.length;
          const part = body.subarray(at, at + Math.min(body.length - at, piece.length - offset));
          assert.ok(part.equals(piece.subarray(offset, offset + part.length)), `the bytes at ${read + at} arrived changed`);
          at += part.length;
        }
        const pauses = Math.floor((read + body.length) / 1_000_000) - Math.floor(read / 1_000_000);
        read += body.length;
        held = Math.max(held, handedOver - read);
        // A second for 100 KB would take half an hour; what counts is that the upstream is always faster.
        if (pauses > 0) await pause(pauses);
      }
      assert.equal(read, size);
      // What lies in the proxy and in the buffers of four sockets.
      assert.ok(held < 32 * MIB, `${held} bytes were taken from the upstream and not given to the guest`);
    });
  },
  '20,000 short tunnels one after the other': async () => {
    await withHarness({ allow: RAW, limits: {} }, async (harness) => {
      const shortTunnel = async () => {
        const socket = connect(harness.port, '127.0.0.1');
        socket.on('data', () => socket.destroy());
        socket.write(head('api.example.test'));
        await once(socket, 'close');
        // Kept by the harness to look at; here only their number counts.
        if (harness.arrivals.length > 200) for (const { socket: old } of harness.arrivals.splice(0, 100)) old.destroy();
        harness.guestSides.splice(0);
        harness.lines.splice(0);
      };
      for (let round = 0; round < 100; round += 1) await shortTunnel();
      const before = process.getActiveResourcesInfo().length;
      for (let round = 0; round < 20_000; round += 1) await shortTunnel();
      await until(() => harness.proxy.stats().connectionsNow === 0, 'every connection to be forgotten');
      const { connections, tunnelsNow, tunnelsOpened } = harness.proxy.stats();
      assert.deepEqual([connections, tunnelsNow, tunnelsOpened], [20_100, 0, 20_100]);
      assert.ok(process.getActiveResourcesInfo().length < before + 500, 'sockets or timers are left');
    });
  },
  [`HTTPS_PROXY=http://127.0.0.1:\${PORT} node -e "fetch('https://api.example.test/')"`]: async () => {
    await withHarness({}, async (harness) => {
      const env = { PATH: process.env.PATH ?? '', HTTPS_PROXY: `http://127.0.0.1:${harness.port}` };
      const code = await new Promise((resolve) => {
        const args = ['-e', "fetch('https://api.example.test/').catch((error) => { console.error(error.cause?.code); process.exit(7); })"];
        execFile(process.execPath, args, { env, timeout: 20_000 }, (error) => resolve(error?.code));
      });
      assert.equal(code, 7);
      assert.deepEqual([harness.lines, harness.lookedUp, harness.dialled], [[], [], []]);
    });
  },
  'HTTPS_PROXY=http://127.0.0.1:${PORT} websocket client to wss://api.example.test/ws, open for 20 minutes with one ping per minute':
    async () => {
      const site = createHttpsServer({ key: KEY, cert: CERT }).on('upgrade', (_request, socket) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
        socket.on('data', (frame: Buffer) => frame[0] === PING && socket.write(Buffer.from([PONG, 0])));
        socket.on('error', () => {});
      });
      await once(site.listen(0, '127.0.0.1'), 'listening');
      const { port } = site.address() as AddressInfo;
      const upstream = (socket: Socket) => {
        const onward = makeClient(port).socket;
        socket.on('close', () => onward.destroy());
        socket.pipe(onward).pipe(socket);
      };
      try {
        // Between two pings the tunnel is as idle as it may be for one and a half of them.
        await withHarness({ limits: { idleMs: 5 * MINUTE_MS }, upstream }, async (harness) => {
          const { socket } = await openTunnel(harness);
          const tls = connectTls({ socket, servername: 'api.example.test', ca: CERT });
          tls.on('error', () => {});
          const headers = {
            connection: 'Upgrade',
            upgrade: 'websocket',
            'sec-websocket-version': '13',
            'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
          };
          const call = request({ createConnection: () => tls, path: '/ws', headers: { ...headers, host: 'api.example.test' } }).end();
          const [, web] = await once(call, 'upgrade');
          let pongs = 0;
          web.on('data', (frame: Buffer) => {
            for (let at = 0; at < frame.length; at += 2) if (frame[at] === PONG) pongs += 1;
          });
          for (let minute = 0; minute < 20; minute += 1) {
            web.write(Buffer.from([PING, MASKED, 1, 2, 3, 4]));
            await pause(MINUTE_MS);
          }
          await until(() => pongs === 20, '20 pongs');
          web.destroy();
        });
      } finally {
        site.closeAllConnections();
        site.close();
      }
    },
  'relay process inside the guest that takes CONNECT from other processes and sends them on to the proxy': async () => {
    await withHarness({ allow: RAW, upstream: (socket) => socket.pipe(socket) }, async (harness) => {
      const child = spawn(process.execPath, ['-e', RELAY_PROCESS, String(harness.port)], { stdio: ['ignore', 'pipe', 'inherit'] });
      try {
        const [line] = await once(createInterface({ input: child.stdout }), 'line');
        const ask = async (host: string) => {
          const client = makeClient(Number(line));
          client.socket.write(head(host));
          await until(() => statusOf(client) !== undefined, 'an answer');
          return client;
        };
        const allowed = await ask('api.example.test');
        assert.equal(statusOf(allowed), 200);
        for (const host of ['evil.test', 'evil.test', 'api.example.test.evil.test']) {
          const client = await ask(host);
          assert.equal(statusOf(client), 403);
          client.socket.destroy();
        }
        assert.match(await refused(harness), /403/);
        assert.deepEqual(harness.lookedUp, ['api.example.test']);
        allowed.socket.destroy();
      } finally {
        child.kill('SIGKILL');
      }
    });
  },
};
