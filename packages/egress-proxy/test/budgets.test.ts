import { createPolicy, type EgressBudgetsInput, loadAllowList, loadBudgets } from '@firecrew/egress-policy';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { BudgetBook } from '../src/index.ts';
import {
  type Client,
  connectHead,
  type Harness,
  type HarnessOptions,
  openTunnel,
  startHarness,
  statusOf,
  tunnelBytes,
  until,
} from './harness.ts';

const ALLOW = [
  { host: 'api.example.test', port: 443, protocol: 'tcp' as const },
  { host: '.pkg.example.test', port: 443, protocol: 'tcp' as const },
];

let harness: Harness;
afterEach(() => harness?.stop());

const start = async (budgets: EgressBudgetsInput, options: HarnessOptions = {}) => {
  harness = await startHarness({ allow: ALLOW, budgets, upstream: (socket) => socket.pipe(socket), ...options });
};

async function ask(target: string): Promise<Client> {
  const client = harness.connect();
  client.socket.write(connectHead(target));
  await until(() => statusOf(client) !== undefined, 'an answer');
  return client;
}

const ends = () => harness.lines.filter(({ event }) => event === 'end');

describe('a budget of bytes', () => {
  it('lets exactly that many through, both directions together, and cuts the tunnel at the next one', async () => {
    await start({ hosts: [{ host: 'api.example.test', bytes: 10 }] });
    const client = await openTunnel(harness);
    client.socket.write('12345');
    await until(() => tunnelBytes(client).length === 5, 'the echo');
    expect(ends()).toEqual([]);
    client.socket.write('6');
    await until(() => ends().length === 1, 'the end');
    expect(ends()).toMatchObject([
      {
        host: 'api.example.test',
        reason: 'host_bytes_spent',
        closedBy: 'proxy',
        bytesOut: 5,
        bytesIn: 5,
        rule: 'budget api.example.test: 10 bytes',
      },
    ]);
    expect(Buffer.concat(harness.arrivals[0]?.chunks ?? []).toString()).toBe('12345');
  });

  it('lets no more through however much comes in one piece', async () => {
    await start({ turn: { bytes: 1000 } }, { upstream: () => undefined });
    const client = await openTunnel(harness);
    client.socket.write(Buffer.alloc(50_000, 'x'));
    await until(() => ends().length === 1, 'the end');
    expect(ends()).toMatchObject([{ reason: 'turn_bytes_spent', bytesOut: 1000, bytesIn: 0, rule: 'budget turn: 1000 bytes' }]);
    await until(
      () => harness.arrivals[0]?.socket.destroyed === true || harness.arrivals[0]?.socket.readableEnded === true,
      'the end upstream',
    );
    expect(Buffer.concat(harness.arrivals[0]?.chunks ?? []).length).toBeLessThanOrEqual(1000);
  });

  it('refuses the next tunnel with the budget, the host and what to do, and looks nothing up', async () => {
    await start({ hosts: [{ host: '.pkg.example.test', bytes: 4 }] });
    const first = await openTunnel(harness, 'one.pkg.example.test:443');
    first.socket.write('12345');
    await until(() => ends().length === 1, 'the end');
    const lookedUp = harness.lookedUp.length;
    const next = await ask('two.pkg.example.test:443');
    expect(next.text()).toMatch(/^HTTP\/1\.1 403 Forbidden \(host_bytes_spent\)\r\nx-firecrew-reason: host_bytes_spent\r\n/);
    expect(next.text()).toContain('two.pkg.example.test:443 denied (host_bytes_spent)');
    expect(next.text()).toContain('the operator can raise the budget (budget .pkg.example.test: 4 bytes)');
    expect(next.text()).not.toContain('Retry-After');
    expect(harness.lookedUp.length).toBe(lookedUp);
    expect(harness.lines.at(-1)).toMatchObject({ event: 'refused', verdict: 'denied', reason: 'host_bytes_spent' });
    expect(harness.proxy.stats()).toMatchObject({ refused: { host_bytes_spent: 1 }, ended: { host_bytes_spent: 1 } });
    expect(statusOf(await ask('api.example.test:443'))).toBe(200);
  });

  it('cuts every tunnel that shares it at its next byte', async () => {
    await start({ turn: { bytes: 4 } });
    const [one, two] = [await openTunnel(harness), await openTunnel(harness, 'a.pkg.example.test:443')];
    one.socket.write('1234');
    await until(() => ends().length === 1, 'the end of the one');
    two.socket.write('x');
    await until(() => ends().length === 2, 'the end of the other');
    expect(ends().map(({ host, reason, bytesOut }) => [host, reason, bytesOut])).toEqual([
      ['api.example.test', 'turn_bytes_spent', 4],
      ['a.pkg.example.test', 'turn_bytes_spent', 0],
    ]);
  });
});

describe('a budget of connections', () => {
  it('counts the tunnels that were opened, ended ones too', async () => {
    await start({ eachHost: { connections: 2 } });
    for (let count = 0; count < 2; count += 1) {
      const client = await openTunnel(harness);
      client.socket.end();
      await until(() => ends().length === count + 1, 'the end');
    }
    const third = await ask('api.example.test:443');
    expect(third.text()).toContain('(host_connections_spent)');
    expect(third.text()).toContain('(budget each host: 2 connections)');
    expect(statusOf(await ask('a.pkg.example.test:443'))).toBe(200);
  });

  it('is passed by none of many that ask at once', async () => {
    await start({ turn: { connections: 3 } });
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask('api.example.test:443')));
    expect(answers.map(statusOf).sort()).toEqual([200, 200, 200, 403, 403, 403, 403, 403]);
  });

  it('is not charged for what got no tunnel', async () => {
    let isDead = true;
    const beforeDial = () => {
      if (isDead) throw new Error('ECONNREFUSED');
    };
    await start({ turn: { connections: 1 } }, { beforeDial });
    expect(statusOf(await ask('api.example.test:443'))).toBe(502);
    isDead = false;
    expect(statusOf(await ask('api.example.test:443'))).toBe(200);
    expect(statusOf(await ask('api.example.test:443'))).toBe(403);
  });
});

describe('budgets that take the place of others', () => {
  const policyOf = (budgets: EgressBudgetsInput) => createPolicy({ rules: loadAllowList(ALLOW), ownAddresses: ['127.0.0.1'], budgets });

  it('hold for what passed before, also of open tunnels', async () => {
    await start({});
    const client = await openTunnel(harness);
    client.socket.write('12345');
    await until(() => tunnelBytes(client).length === 5, 'the echo');
    expect(harness.proxy.replacePolicy(policyOf({ turn: { bytes: 8 } }))).toBe(0);
    client.socket.write('6');
    await until(() => ends().length === 1, 'the end');
    expect(ends()).toMatchObject([{ reason: 'turn_bytes_spent', bytesIn: 5, bytesOut: 5 }]);
    expect(statusOf(await ask('api.example.test:443'))).toBe(403);
    harness.proxy.replacePolicy(policyOf({ turn: { bytes: 100 } }));
    expect(statusOf(await ask('api.example.test:443'))).toBe(200);
  });
});

describe('the book of what passed', () => {
  it('gives the proxies that share it one sum, and never more than a budget whatever budgets came in between', () => {
    const [host, other] = ['a.example.test', 'b.example.test'];
    const limit = loadBudgets({ hosts: [{ host: '.example.test', bytes: 1000 }] });
    const none = loadBudgets();
    const step = fc.record({ who: fc.constantFrom(0, 1), bytes: fc.integer({ min: 1, max: 300 }), limited: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const book = new BudgetBook();
        let now = limit;
        const accounts = [book.account(host, () => now), book.account(other, () => now)];
        let passed = 0;
        for (const { who, bytes, limited } of steps) {
          now = limited ? limit : none;
          const granted = accounts[who]?.take(bytes).granted ?? 0;
          expect(granted).toBe(limited ? Math.min(bytes, Math.max(0, 1000 - passed)) : bytes);
          passed += granted;
        }
      }),
    );
  });
});
