import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import type { EgressLine } from '@firecrew/protocol';
import { expect, it, vi } from 'vitest';
import { EgressGate } from '../../src/shim/egress-gate.ts';
import { turnSpec } from './turn-spec.ts';

// The one name that can be looked up everywhere stands for an address of this host, which is refused already: here the host has none.
vi.mock('@firecrew/egress-proxy', async (original) => ({ ...(await original<object>()), listOwnAddresses: () => [] }));

/** The audit of one connection of a guest to a name that a rule opens a range for. */
async function audit(serverAddresses: readonly string[]): Promise<EgressLine[]> {
  const target = createServer((socket) => socket.destroy());
  await once(target.listen(0, '127.0.0.1'), 'listening');
  const { port } = target.address() as AddressInfo;
  const lines: EgressLine[] = [];
  const egress = {
    allow: [`localhost:${port}/tcp`],
    ceiling: null,
    addressRules: [{ host: 'localhost', addresses: ['127.0.0.0/8', '::1'] }],
  };
  const gate = new EgressGate({
    spec: turnSpec({ egress }),
    leaseValid: () => true,
    audit: (line) => void lines.push(line),
    serverAddresses,
  });
  await gate.open('agent');
  const door = createServer({ allowHalfOpen: true }, (socket) => gate.handle(socket));
  await once(door.listen(0, '127.0.0.1'), 'listening');
  const guest = connect((door.address() as AddressInfo).port, '127.0.0.1');
  guest.on('error', () => undefined).resume();
  guest.write(`CONNECT localhost:${port} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`);
  await once(guest, 'close');
  await gate.close();
  door.close();
  target.close();
  return lines;
}

it('refuses a guest an address of server or database, also one that a range of a rule opens', async () => {
  expect(await audit(['127.0.0.9'])).toMatchObject([{ event: 'open', address: '127.0.0.1' }, { event: 'end' }]);
  expect(await audit(['127.0.0.1', '::1'])).toMatchObject([{ event: 'refused', reason: 'own_address' }]);
});
