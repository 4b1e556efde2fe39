import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type AddressRuleInput, type AllowEntry, createPolicy, loadAllowList } from '@firecrew/egress-policy';
import { SummaryBook } from '../../src/index.ts';
import { connectHead, makeClient, openTunnel, statusOf, tunnelBytes, until } from '../harness.ts';
import { head, RAW, refused, withHarness } from './with-harness.ts';

const PKG = '.pkg.example.test';

function policyOf(allow: readonly AllowEntry[], addressRules: readonly AddressRuleInput[] = []) {
  return createPolicy({ rules: loadAllowList(allow), addressRules, ownAddresses: ['127.0.0.1', '::1'] });
}

/** A proxy in a process of its own, which tells its port; every name leads to the port that it is given. */
const PROXY_PROCESS = `
const { createServer } = await import('node:net');
const { createPolicy, loadAllowList } = await import('@firecrew/egress-policy');
const { createEgressProxy, defaultDial } = await import(process.argv[1]);
const rules = loadAllowList([{ host: 'api.example.test', port: 443, protocol: 'tcp' }]);
const proxy = createEgressProxy({
  policy: createPolicy({ rules }),
  ids: { vm: 'vm_test' },
  audit: () => undefined,
  resolve: async () => ['93.184.216.34'],
  dial: (target) => defaultDial({ ...target, address: '127.0.0.1', family: 4, port: Number(process.argv[2]) }),
});
const server = createServer({ allowHalfOpen: true }, (socket) => proxy.handle(socket)).listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** Changes of the policy, the end of the proxy, and what is counted. */
export const RELOADS: Readonly<Record<string, () => Promise<void>>> = {
  'remove a host from the list while the guest runs, then connect to it': async () => {
    await withHarness({ allow: RAW }, async (harness) => {
      const open = await openTunnel(harness);
      harness.proxy.replacePolicy(policyOf([PKG]));
      // What the documentation says of open tunnels: those that the new list refuses are cut.
      await until(() => open.ended() || open.closed(), 'the end of the open tunnel');
      assert.match(await refused(harness, head('api.example.test')), /^HTTP\/1\.1 403 .*\(not_listed\)/);
      assert.equal(harness.dialled.length, 1);
      assert.equal(harness.lookedUp.length, 1);
    });
  },
  'change an unrelated setting while the guest runs, then connect to an unlisted host': async () => {
    await withHarness({ allow: RAW, upstream: (socket) => socket.pipe(socket) }, async (harness) => {
      const open = await openTunnel(harness);
      for (const rules of [[], [{ host: 'git.corp.example', addresses: ['10.0.0.7'] }], []]) {
        harness.proxy.replacePolicy(policyOf(RAW, rules));
        assert.match(await refused(harness), /^HTTP\/1\.1 403 .*\(not_listed\)/);
      }
      assert.deepEqual([harness.lookedUp.length, harness.dialled.length], [1, 1]);
      open.socket.write('still open');
      await until(() => tunnelBytes(open).toString() === 'still open', 'the echo');
    });
  },
  'kill the proxy process while a guest runs': async () => {
    await withHarness({ allow: RAW }, async (harness) => {
      const source = fileURLToPath(new URL('../../src/index.ts', import.meta.url));
      const cwd = fileURLToPath(new URL('../..', import.meta.url));
      const args = ['--input-type=module', '-e', PROXY_PROCESS, source, String(harness.upstreamPort)];
      const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
      const [line] = await once(createInterface({ input: child.stdout }), 'line');
      const guest = makeClient(Number(line));
      guest.socket.write(connectHead('api.example.test:443'));
      await until(() => statusOf(guest) === 200, 'the tunnel');
      child.kill('SIGKILL');
      await once(child, 'exit');
      await until(() => guest.ended() || guest.closed(), 'the end of the tunnel');
      const arrived = harness.arrivals.length;
      const again = makeClient(Number(line));
      again.socket.write(connectHead('api.example.test:443'));
      await until(() => again.closed(), 'the refusal of the system');
      assert.equal(again.text(), '');
      assert.equal(harness.arrivals.length, arrived);
    });
  },
  '100 refused requests for one host, then read the summary': async () => {
    await withHarness({}, async (harness) => {
      for (let round = 0; round < 100; round += 1) await refused(harness);
      await refused(harness, head('other.test'));
      const book = new SummaryBook();
      for (const line of harness.lines) book.add(line);
      assert.deepEqual(book.summary(), {
        allowed: [],
        denied: [
          { host: 'evil.test', port: 443, reason: 'not_listed', connections: 100 },
          { host: 'other.test', port: 443, reason: 'not_listed', connections: 1 },
        ],
      });
      assert.deepEqual(harness.proxy.stats().refused, { not_listed: 101 });
    });
  },
};
