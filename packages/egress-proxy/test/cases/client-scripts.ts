import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { openTunnel, statusOf, tunnelBytes, until } from '../harness.ts';
import { LONG } from './long-scripts.ts';
import { RELOADS } from './reload-scripts.ts';
import { head, RAW, refused, withHarness } from './with-harness.ts';

/** Life of one tunnel: what arrives, what is freed, what is written down. */
const TUNNELS: Readonly<Record<string, () => Promise<void>>> = {
  'tunnel open; client sends a request and half-closes; server answers 1 MB two seconds later': async () => {
    const answer = Buffer.alloc(1_048_576, 'a');
    const upstream = (socket: Socket) => socket.on('end', () => setTimeout(() => socket.end(answer), 2000));
    await withHarness({ allow: RAW, upstream }, async (harness) => {
      const client = await openTunnel(harness);
      client.socket.end('request');
      await until(() => client.ended(), 'the end of the answer');
      assert.ok(tunnelBytes(client).equals(answer));
      assert.equal(harness.arrivals[0]?.chunks.join(''), 'request');
    });
  },
  'tunnel open; upstream resets in the middle of a download': async () => {
    const upstream = (socket: Socket) => socket.on('data', () => socket.write(Buffer.alloc(100_000), () => socket.resetAndDestroy()));
    await withHarness({ allow: RAW, upstream }, async (harness) => {
      const client = await openTunnel(harness);
      client.socket.write('request');
      await until(() => client.ended() || client.closed(), 'the end of the tunnel');
      await until(() => harness.lines.length === 2, 'the end line');
      const { event, reason, closedBy, bytesOut } = harness.lines[1] ?? {};
      assert.deepEqual([event, reason, closedBy, bytesOut], ['end', 'upstream_reset', 'upstream', 7]);
      await until(() => harness.proxy.stats().connectionsNow === 0, 'the connection to be forgotten');
    });
  },
  'client resets right after sending the CONNECT head, before the verdict': async () => {
    await withHarness({}, async (harness) => {
      for (let round = 0; round < 50; round += 1) {
        const { socket } = harness.connect();
        socket.write(head('api.example.test'), () => socket.resetAndDestroy());
      }
      const over = () => harness.proxy.stats().connections === 50 && harness.proxy.stats().connectionsNow === 0;
      await until(over, 'all connections to be over');
      await openTunnel(harness);
    });
  },
  'guest stops while 20 tunnels are open': async () => {
    await withHarness({ allow: RAW }, async (harness) => {
      await Promise.all(Array.from({ length: 20 }, () => openTunnel(harness)));
      await harness.proxy.close();
      await until(() => harness.arrivals.every(({ socket }) => socket.destroyed || socket.readableEnded), 'the upstream sockets to end');
      assert.equal(harness.lines.filter(({ event, reason }) => event === 'end' && reason === 'proxy_closed').length, 20);
    });
  },
  'transfer of random bytes in both directions at once, 50 MB each way, compared by hash': async () => {
    await withHarness({ allow: RAW, upstream: (socket) => socket.pipe(socket) }, async (harness) => {
      const client = await openTunnel(harness);
      const sent = Buffer.alloc(52_428_800);
      for (let at = 0; at < sent.length; at += 4) sent.writeUInt32LE((at * 2_654_435_761) >>> 0, at);
      client.socket.end(sent);
      await until(() => client.ended(), 'the echo', 60_000);
      assert.ok(tunnelBytes(client).equals(sent));
    });
  },
};

/** Many guests at once. */
const CROWDS: Readonly<Record<string, () => Promise<void>>> = {
  'open 2000 CONNECT tunnels to api.example.test at once (an npm install of a large project does this)': async () => {
    await withHarness({ allow: RAW }, async (harness) => {
      const clients = Array.from({ length: 2000 }, () => harness.connect());
      for (const { socket } of clients) socket.write(head('api.example.test'));
      await until(() => clients.every((client) => statusOf(client) !== undefined || client.closed()), 'every answer', 60_000);
      for (const status of clients.map(statusOf)) assert.ok(status === 200 || status === 429 || status === 503, `status ${status}`);
      assert.ok(harness.proxy.stats().tunnelsNow <= 256);
    });
  },
  '64 CONNECT requests at once for different names under a dot entry whose DNS answers take 30 seconds each': async () => {
    await withHarness({ limits: { lookupMs: 300 }, resolve: () => new Promise(() => {}) }, async (harness) => {
      const clients = Array.from({ length: 64 }, () => harness.connect());
      for (const [index, { socket }] of clients.entries()) socket.write(head(`n${index}.pkg.example.test`));
      await until(() => clients.every((client) => statusOf(client) === 504), 'every 504');
      assert.equal(harness.lookedUp.length, 2);
    });
  },
};

/** What is written down, and what the client is told. */
const AUDITS: Readonly<Record<string, () => Promise<void>>> = {
  'one allowed, one refused and one malformed request': async () => {
    await withHarness({}, async (harness) => {
      for (const host of ['evil.test', 'a_b@c']) await refused(harness, head(host));
      await openTunnel(harness);
      assert.deepEqual(
        harness.lines.map(({ connection, verdict, reason, host, port }) => [connection, verdict, reason, host, port]),
        [
          [1, 'denied', 'not_listed', 'evil.test', 443],
          [2, 'malformed', 'bad_character', undefined, 443],
          [3, 'allowed', 'listed', 'api.example.test', 443],
        ],
      );
      assert.ok(harness.lines.every(({ ids, at }) => ids.vm === 'vm_test' && !Number.isNaN(Date.parse(at))));
    });
  },
  'allowed tunnel with 3 MB down and 1 MB up': async () => {
    const down = Buffer.alloc(3_145_728, 'd');
    await withHarness({ allow: RAW, upstream: (socket) => socket.on('end', () => socket.end(down)) }, async (harness) => {
      const client = await openTunnel(harness);
      client.socket.end(Buffer.alloc(1_048_576, 'u'));
      await until(() => harness.lines.length === 2, 'the closing line');
      const { event, bytesIn, bytesOut, closedBy, reason, durationMs } = harness.lines[1] ?? {};
      assert.deepEqual([event, bytesIn, bytesOut, closedBy, reason], ['end', 3_145_728, 1_048_576, 'guest', 'guest_closed']);
      assert.ok((durationMs ?? -1) >= 0);
    });
  },
  'refused request': async () => {
    await withHarness({}, async (harness) => {
      const text = await refused(harness);
      assert.match(text, /^HTTP\/1\.1 403 Forbidden \(not_listed\)\r\nx-firecrew-reason: not_listed\r\n/);
      assert.match(text, /evil\.test:443 denied \(not_listed\)/);
    });
  },
  'audit file cannot be written (disk full)': async () => {
    await withHarness({ audit: () => Promise.reject(new Error('ENOSPC')) }, async (harness) => {
      assert.match(await refused(harness, head('api.example.test')), /^HTTP\/1\.1 503 .*\(audit_unavailable\)/);
      assert.deepEqual(harness.dialled, []);
    });
  },
};

/** The scripts of a client that the cases put into words, by those words; each throws when the case does not end as wanted. */
export const CLIENT_SCRIPTS: ReadonlyMap<string, () => Promise<void>> = new Map(
  Object.entries({ ...TUNNELS, ...CROWDS, ...AUDITS, ...RELOADS, ...LONG }),
);
