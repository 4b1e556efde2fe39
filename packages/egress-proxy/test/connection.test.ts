import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { createPolicy, loadAllowList } from '@firecrew/egress-policy';
import { afterEach, describe, expect, it } from 'vitest';
import * as exported from '../src/index.ts';
import { createEgressProxy, EGRESS_PROXY_LIMITS, listOwnAddresses } from '../src/index.ts';
import { connectHead, type Harness, openTunnel, startHarness, statusOf, tunnelBytes, until } from './harness.ts';

const RAW = [{ host: 'api.example.test', port: 443, protocol: 'tcp' as const }];

let harness: Harness;
afterEach(() => harness?.stop());

describe('the audit', () => {
  it('has the open line on record before anything is dialled', async () => {
    let linesAtDial = -1;
    harness = await startHarness({
      beforeDial: () => {
        linesAtDial = harness.lines.length;
      },
    });
    await openTunnel(harness);
    expect(linesAtDial).toBe(1);
  });

  it('may be written before the call returns', async () => {
    let linesAtDial = -1;
    harness = await startHarness({
      auditNow: () => undefined,
      beforeDial: () => {
        linesAtDial = harness.lines.length;
      },
    });
    await openTunnel(harness);
    expect(linesAtDial).toBe(1);
    expect(harness.proxy.stats().auditFailures).toBe(0);
  });

  it.each([
    ['throws', { auditNow: () => assert.fail('the disk is full') }],
    ['rejects', { audit: () => Promise.reject(new Error('the disk is full')) }],
  ])('fails closed when whoever writes a line %s', async (_how, options) => {
    harness = await startHarness(options);
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => statusOf(client) === 503, 'the refusal');
    expect(client.text()).toContain('audit_unavailable');
    expect(harness.dialled).toEqual([]);
    expect(harness.proxy.stats().auditFailures).toBeGreaterThan(0);
  });

  it('fails closed when a line takes too long', async () => {
    harness = await startHarness({ limits: { auditMs: 50 }, audit: () => new Promise(() => {}) });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => statusOf(client) === 503, 'the refusal');
    expect(harness.dialled).toEqual([]);
    expect(harness.proxy.stats().auditFailures).toBeGreaterThan(0);
  });

  it('follows a failed dial with a refused line of the same connection', async () => {
    harness = await startHarness({
      beforeDial: () => {
        throw new Error('ECONNREFUSED');
      },
    });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => client.ended(), 'the refusal');
    expect(harness.lines.map(({ event, verdict, reason, connection }) => [event, verdict, reason, connection])).toEqual([
      ['open', 'allowed', 'listed', 1],
      ['refused', 'unreachable', 'dial_failed', 1],
    ]);
  });

  it('keeps silent about a connection that said nothing', async () => {
    harness = await startHarness();
    harness.connect().socket.end();
    await until(() => harness.proxy.stats().connections === 1 && harness.proxy.stats().connectionsNow === 0, 'the end');
    expect(harness.lines).toEqual([]);
  });
});

describe('addresses', () => {
  it('refuses the whole answer when one of its addresses is private', async () => {
    harness = await startHarness({ resolve: () => ['93.184.216.34', '10.0.0.1'] });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => statusOf(client) === 403, 'the refusal');
    expect(harness.dialled).toEqual([]);
    expect(harness.lines).toMatchObject([{ reason: 'private_address', address: '10.0.0.1', rule: '10.0.0.0/8', host: 'api.example.test' }]);
  });

  it('dials the canonical form of what was checked', async () => {
    harness = await startHarness({ resolve: () => ['::ffff:93.184.216.34', '93.184.216.34'] });
    await openTunnel(harness);
    expect(harness.dialled).toEqual(['93.184.216.34']);
  });

  it('goes on to the next address when one does not answer', async () => {
    harness = await startHarness({
      resolve: () => ['93.184.216.1', '93.184.216.2'],
      limits: { dialStaggerMs: 30 },
      beforeDial: ({ address }) => (address.endsWith('.1') ? new Promise(() => {}) : undefined),
    });
    await openTunnel(harness);
    expect(harness.dialled).toEqual(['93.184.216.1', '93.184.216.2']);
  });

  it('gives up all addresses together at the bound of the dial, however many are left', async () => {
    harness = await startHarness({
      resolve: () => Array.from({ length: 60 }, (_, index) => `93.184.216.${index}`),
      limits: { dialMs: 300, dialStaggerMs: 50 },
      beforeDial: () => new Promise(() => {}),
    });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => statusOf(client) === 504, 'the refusal');
    expect(harness.dialled.length).toBeLessThanOrEqual(8);
    expect(harness.lines[1]).toMatchObject({ event: 'refused', verdict: 'unreachable', reason: 'dial_timeout' });
  });

  it('refuses an answer with more addresses than the limit', async () => {
    const many = Array.from({ length: 5 }, (_, index) => `93.184.216.${index}`);
    harness = await startHarness({ resolve: () => many, limits: { addresses: 4 } });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => statusOf(client) === 502, 'the refusal');
    expect(client.text()).toContain('too_many_addresses');
  });
});

describe('capacity', () => {
  const reasonsOf = async (count: number, target: (index: number) => string): Promise<(string | undefined)[]> => {
    const clients = Array.from({ length: count }, () => harness.connect());
    for (const [index, client] of clients.entries()) {
      client.socket.write(connectHead(target(index)));
      await until(() => statusOf(client) !== undefined, 'an answer');
    }
    return clients.map((client) => /x-firecrew-reason: (\w+)/.exec(client.text())?.[1]);
  };

  it('answers 503 at the bound of all tunnels and 429 at the bound of one host', async () => {
    harness = await startHarness({ limits: { tunnels: 3, tunnelsPerHost: 2 } });
    expect(await reasonsOf(5, (index) => (index < 3 ? 'api.example.test:443' : `n${index}.pkg.example.test:443`))).toEqual([
      undefined,
      undefined,
      'host_busy',
      undefined,
      'tunnels_busy',
    ]);
  });

  it('gives the place back when a tunnel ends', async () => {
    harness = await startHarness({ allow: RAW, limits: { tunnels: 1 } });
    for (let round = 0; round < 3; round += 1) {
      const client = await openTunnel(harness);
      client.socket.end();
      await until(() => harness.proxy.stats().tunnelsNow === 0, 'the place to be free');
    }
  });

  it('refuses connections beyond the bound unread', async () => {
    harness = await startHarness({ limits: { connections: 1 } });
    harness.connect();
    await until(() => harness.proxy.stats().connectionsNow === 1, 'the first connection');
    expect(await reasonsOf(1, () => 'api.example.test:443')).toEqual(['connections_busy']);
  });

  it('serves hundreds of short tunnels without growing', async () => {
    harness = await startHarness({ allow: RAW });
    for (let round = 0; round < 300; round += 1) {
      const client = await openTunnel(harness);
      client.socket.end('x');
      await until(() => client.closed() || client.ended(), 'the end');
      client.socket.destroy();
    }
    await until(() => harness.proxy.stats().connectionsNow === 0, 'every connection to be forgotten');
    expect(harness.proxy.stats()).toMatchObject({ tunnelsOpened: 300, tunnelsNow: 0, ended: { guest_closed: 300 } });
  });
});

describe('an open tunnel', () => {
  it('ends when nothing moves for the idle limit, and not while something does', async () => {
    harness = await startHarness({ allow: RAW, limits: { idleMs: 150 } });
    const client = await openTunnel(harness);
    for (let round = 0; round < 4; round += 1) {
      client.socket.write('x');
      await until(() => (harness.arrivals[0]?.chunks.join('').length ?? 0) > round, 'the byte');
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect(harness.lines).toHaveLength(1);
    await until(() => harness.lines.length === 2, 'the end line');
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'idle_timeout', closedBy: 'proxy', bytesOut: 4 });
  });

  it('holds the upstream back while the guest does not read', async () => {
    const total = 64 * 1_048_576;
    harness = await startHarness({ allow: RAW, upstream: (socket) => void socket.write(Buffer.alloc(total)) });
    const client = await openTunnel(harness);
    client.socket.pause();
    const seen = (): number => harness.guestSides[0]?.bytesWritten ?? 0;
    let before = -1;
    while (before !== seen()) {
      before = seen();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(seen()).toBeLessThan(total / 2);
    expect(harness.guestSides[0]?.writableLength).toBeLessThan(1_048_576);
    client.socket.resume();
    await until(() => client.socket.bytesRead >= total, 'the rest', 60_000);
  });

  it('is cut with every other one before a chunk is forwarded on a lost lease', async () => {
    let held = true;
    harness = await startHarness({ allow: RAW, leaseValid: () => held });
    const [first, second] = [await openTunnel(harness), await openTunnel(harness)];
    held = false;
    first.socket.write('must not arrive');
    await until(() => first.ended() || first.closed(), 'the first tunnel to end');
    await until(() => second.ended() || second.closed(), 'the second tunnel to end');
    await until(() => harness.lines.length === 4, 'two end lines');
    expect(harness.lines.slice(2)).toMatchObject([{ reason: 'lease_lost' }, { reason: 'lease_lost' }]);
    expect(harness.arrivals.flatMap(({ chunks }) => chunks)).toEqual([]);
    held = true;
    const third = harness.connect();
    third.socket.write(connectHead('api.example.test:443'));
    await until(() => statusOf(third) === 503, 'the refusal after the loss');
  });

  it('checks the lease for bytes that come from the upstream too', async () => {
    let held = true;
    harness = await startHarness({ allow: RAW, leaseValid: () => held, upstream: () => {} });
    const client = await openTunnel(harness);
    await until(() => harness.arrivals.length === 1, 'the upstream connection');
    held = false;
    harness.arrivals[0]?.socket.write('must not arrive');
    await until(() => client.ended() || client.closed(), 'the end');
    expect(tunnelBytes(client).length).toBe(0);
  });

  it('carries nothing of a server that speaks before the ClientHello', async () => {
    harness = await startHarness({ limits: { helloMs: 100 }, upstream: (socket) => void socket.write('banner') });
    const client = await openTunnel(harness);
    await until(() => client.ended() || client.closed(), 'the end');
    expect(tunnelBytes(client).length).toBe(0);
    expect(harness.lines[1]).toMatchObject({ event: 'refused', reason: 'hello_timeout' });
  });

  it('frees the place when the guest is lost after its half-close while the upstream keeps silent', async () => {
    harness = await startHarness({ allow: RAW, upstream: () => {} });
    const client = await openTunnel(harness);
    client.socket.end('x');
    await until(() => harness.arrivals[0]?.socket.readableEnded === true, 'the half-close to arrive');
    harness.guestSides[0]?.destroy();
    await until(() => harness.proxy.stats().tunnelsNow === 0, 'the place to be free');
    expect(harness.lines[1]).toMatchObject({ reason: 'guest_reset' });
  });
});

describe('a stream that fails', () => {
  const policy = createPolicy({ rules: loadAllowList(['api.example.test']) });

  it('is guarded before handle returns', async () => {
    harness = await startHarness();
    const proxy = createEgressProxy({ policy, ids: { vm: 'vm_test' }, audit: () => {} });
    const stream = new PassThrough();
    proxy.handle(stream);
    stream.destroy(new Error('reset'));
    await until(() => proxy.stats().connectionsNow === 0, 'the connection to be forgotten');
  });

  it('may already be destroyed', async () => {
    harness = await startHarness();
    const proxy = createEgressProxy({ policy, ids: { vm: 'vm_test' }, audit: () => {} });
    proxy.handle(new PassThrough().destroy());
    await until(() => proxy.stats().connectionsNow === 0, 'the connection to be forgotten');
  });
});

describe('the addresses of this host', () => {
  it('hold loopback and are all readable by a policy', () => {
    expect(listOwnAddresses()).toContain('127.0.0.1');
    expect(createPolicy({ rules: [], ownAddresses: listOwnAddresses() }).ownAddresses).toHaveLength(listOwnAddresses().length);
  });
});

describe('what others see', () => {
  it('keeps its exports', () => {
    expect(Object.keys(exported).sort()).toMatchInlineSnapshot(`
      [
        "ADDRESSES_MAX",
        "AUDIT_TIMEOUT_MS",
        "BudgetBook",
        "CHAIN_CREDENTIAL_MAX_BYTES",
        "CHAIN_REASONS",
        "CHAIN_STAGGER_MS",
        "CONNECTIONS_MAX",
        "ChainError",
        "DIAL_STAGGER_MS",
        "DIAL_TIMEOUT_MS",
        "EGRESS_PROXY_LIMITS",
        "END_REASONS",
        "HEAD_TIMEOUT_MS",
        "HELLO_TIMEOUT_MS",
        "LINGER_BYTES",
        "LINGER_MS",
        "LOOKUPS_MAX",
        "LOOKUP_TIMEOUT_MS",
        "PROXY_REASONS",
        "SummaryBook",
        "TUNNELS_MAX",
        "TUNNELS_PER_HOST_MAX",
        "TUNNEL_IDLE_MS",
        "TunnelAgent",
        "createEgressProxy",
        "defaultDial",
        "defaultResolve",
        "listOwnAddresses",
        "makeChain",
        "openOperatorTunnel",
        "readChainCredential",
        "refusalStatus",
        "tunnelDispatcher",
      ]
    `);
  });

  it('keeps its default limits', () => {
    expect(EGRESS_PROXY_LIMITS).toEqual({
      headMs: 10_000,
      lookupMs: 10_000,
      lookups: 2,
      dialMs: 10_000,
      dialStaggerMs: 250,
      chainStaggerMs: 1_000,
      helloMs: 10_000,
      idleMs: 3_600_000,
      auditMs: 10_000,
      lingerMs: 1_000,
      lingerBytes: 262_144,
      connections: 1_024,
      tunnels: 512,
      tunnelsPerHost: 256,
      addresses: 256,
    });
  });
});
