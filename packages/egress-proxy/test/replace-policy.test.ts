import { once } from 'node:events';
import { type AddressRuleInput, type AllowEntry, createPolicy, type EgressPolicy, loadAllowList } from '@firecrew/egress-policy';
import { afterEach, describe, expect, it } from 'vitest';
import { connectHead, type Harness, type HarnessOptions, openTunnel, startHarness, statusOf, tunnelBytes, until } from './harness.ts';

const API: AllowEntry = { host: 'api.example.test', port: 443, protocol: 'tcp' };
const PKG: AllowEntry = { host: 'files.pkg.example.test', port: 443, protocol: 'tcp' };

let harness: Harness;
afterEach(() => harness?.stop());

function policyOf(allow: readonly AllowEntry[], addressRules: readonly AddressRuleInput[] = []): EgressPolicy {
  return createPolicy({ rules: loadAllowList(allow), addressRules, ownAddresses: ['127.0.0.1', '::1'] });
}

const start = async (options: HarnessOptions = {}) => {
  harness = await startHarness({ allow: [API, PKG], upstream: (socket) => socket.pipe(socket), ...options });
};

/** Sends bytes through a tunnel and waits until they come back. */
async function echo(client: Awaited<ReturnType<typeof openTunnel>>, text: string): Promise<void> {
  client.socket.write(text);
  await until(() => tunnelBytes(client).toString().endsWith(text), 'the echo');
}

describe('a policy that takes the place of another one', () => {
  it('cuts the open tunnels that it does not allow, and leaves the others alone', async () => {
    await start();
    const [kept, cut] = [await openTunnel(harness), await openTunnel(harness, 'files.pkg.example.test:443')];
    await echo(kept, 'one');
    await echo(cut, 'one');
    expect(harness.proxy.replacePolicy(policyOf([API]))).toBe(1);
    await until(() => cut.ended() || cut.closed(), 'the end of the refused tunnel');
    await echo(kept, 'two');
    await until(() => harness.lines.some(({ event }) => event === 'end'), 'the end line');
    expect(harness.lines.filter(({ event }) => event === 'end')).toMatchObject([
      { host: 'files.pkg.example.test', reason: 'policy_changed', closedBy: 'proxy', bytesOut: 3 },
    ]);
  });

  it('judges new connections at once, in both directions', async () => {
    await start({ allow: [API] });
    const ask = async (target: string) => {
      const client = harness.connect();
      client.socket.write(connectHead(target));
      await until(() => statusOf(client) !== undefined, 'an answer');
      return statusOf(client);
    };
    expect(await ask('files.pkg.example.test:443')).toBe(403);
    harness.proxy.replacePolicy(policyOf([PKG]));
    expect([await ask('files.pkg.example.test:443'), await ask('api.example.test:443')]).toEqual([200, 403]);
  });

  it('cuts nothing and opens nothing where it says the same', async () => {
    await start();
    const client = await openTunnel(harness);
    for (let round = 0; round < 5; round += 1) expect(harness.proxy.replacePolicy(policyOf([PKG, API]))).toBe(0);
    await echo(client, 'still here');
    const other = harness.connect();
    other.socket.write(connectHead('evil.example.test:443'));
    await until(() => statusOf(other) === 403, 'the refusal');
  });

  it('leaves a tunnel that another rule of it allows', async () => {
    await start();
    const client = await openTunnel(harness);
    expect(harness.proxy.replacePolicy(policyOf([{ host: '.example.test', port: 443, protocol: 'tcp' }]))).toBe(0);
    await echo(client, 'still here');
  });

  it('cuts a tunnel of any bytes where it demands TLS, whose server name was never seen', async () => {
    await start();
    const client = await openTunnel(harness);
    expect(harness.proxy.replacePolicy(policyOf(['api.example.test']))).toBe(1);
    await until(() => client.ended() || client.closed(), 'the end');
  });

  it('cuts a tunnel whose address it does not open any more', async () => {
    const rules = [{ host: 'api.example.test', addresses: ['10.1.2.3'] }];
    await start({ addressRules: rules, resolve: () => ['10.1.2.3'] });
    const client = await openTunnel(harness);
    expect(harness.proxy.replacePolicy(policyOf([API], rules))).toBe(0);
    await echo(client, 'allowed');
    expect(harness.proxy.replacePolicy(policyOf([API]))).toBe(1);
    await until(() => client.ended() || client.closed(), 'the end');
  });

  it('cuts a connection whose look-up is under way, and dials nothing', async () => {
    let answer: (addresses: string[]) => void = () => undefined;
    await start({ resolve: () => new Promise<string[]>((resolve) => (answer = resolve)) });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => harness.lookedUp.length === 1, 'the look-up');
    expect(harness.proxy.replacePolicy(policyOf([PKG]))).toBe(1);
    answer(['93.184.216.34']);
    await until(() => statusOf(client) === 403, 'the refusal');
    expect(client.text()).toContain('policy_changed');
    expect(harness.dialled).toEqual([]);
  });

  it('judges the addresses of a look-up that was under way by what holds when they come', async () => {
    let answer: (addresses: string[]) => void = () => undefined;
    await start({
      addressRules: [{ host: 'api.example.test', addresses: ['10.1.2.3'] }],
      resolve: () => new Promise<string[]>((resolve) => (answer = resolve)),
    });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => harness.lookedUp.length === 1, 'the look-up');
    expect(harness.proxy.replacePolicy(policyOf([API]))).toBe(0);
    answer(['10.1.2.3']);
    await until(() => statusOf(client) === 403, 'the refusal');
    expect(client.text()).toContain('private_address');
    expect(harness.dialled).toEqual([]);
  });

  it('cuts a connection whose line is being written, and dials nothing', async () => {
    let written: () => void = () => undefined;
    await start({ audit: ({ event }) => (event === 'open' ? new Promise<void>((resolve) => (written = resolve)) : undefined) });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => harness.lookedUp.length === 1, 'the look-up');
    await new Promise((resolve) => setImmediate(resolve));
    expect(harness.proxy.replacePolicy(policyOf([PKG]))).toBe(1);
    written();
    await until(() => statusOf(client) === 403, 'the refusal');
    expect(harness.dialled).toEqual([]);
  });

  it('cuts a connection that is being dialled, before the guest is told that it is open', async () => {
    let dialled: () => void = () => undefined;
    await start({ beforeDial: () => new Promise<void>((resolve) => (dialled = resolve)) });
    const client = harness.connect();
    client.socket.write(connectHead('api.example.test:443'));
    await until(() => harness.dialled.length === 1, 'the dial');
    expect(harness.proxy.replacePolicy(policyOf([PKG]))).toBe(1);
    dialled();
    await until(() => statusOf(client) === 403, 'the refusal');
    expect(harness.lines.at(-1)).toMatchObject({ event: 'refused', reason: 'policy_changed' });
  });

  it('cuts a tunnel that waits for its ClientHello, and the upstream gets no byte', async () => {
    harness = await startHarness({ allow: ['api.example.test'] });
    const client = await openTunnel(harness);
    expect(harness.proxy.replacePolicy(policyOf([PKG]))).toBe(1);
    if (!client.ended()) await once(client.socket, 'end');
    expect(harness.arrivals.flatMap(({ chunks }) => chunks)).toEqual([]);
    await until(() => harness.lines.length === 2, 'the end line');
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'policy_changed', bytesOut: 0 });
  });
});
