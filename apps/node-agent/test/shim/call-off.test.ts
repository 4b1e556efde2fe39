import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { callOff } from '../../src/shim/call-off.ts';
import { EgressGate } from '../../src/shim/egress-gate.ts';
import { Lease } from '../../src/shim/lease.ts';
import { turnSpec } from './turn-spec.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => onSocket(socket.on('error', () => undefined)));
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

it('an attempt that is called off sends nothing more, whatever its guest does and whatever step comes next', async () => {
  const outside = await listen((socket) => socket.resume());
  const target = `localhost:${outside}`;
  const egress = { allow: [`${target}/tcp`], ceiling: null, addressRules: [{ host: 'localhost', addresses: ['127.0.0.1'] }] };
  const lease = new Lease(() => 0, 1_000, 0);
  const gate = new EgressGate({
    spec: turnSpec({ egress }),
    leaseValid: () => lease.isValid(),
    audit: () => undefined,
    serverAddresses: [],
  });
  const door = await listen((socket) => gate.handle(socket));
  /** Asks for a tunnel as a guest would. */
  const dial = (): { guest: Socket; answer: Promise<string>; closed: Promise<unknown> } => {
    const guest = connect(door, '127.0.0.1').on('error', () => undefined);
    const closed = once(guest, 'close');
    const answer = Promise.race([once(guest, 'data').then(([part]) => String(part)), closed.then(() => '')]);
    guest.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    return { guest, answer, closed };
  };

  await gate.open('agent');
  const open = dial();
  expect(await open.answer).toMatch(/^HTTP\/1\.1 200/);
  const interrupts: unknown[] = [];
  const closed: string[] = [];
  callOff(
    { lease, gate, model: { close: () => void closed.push('model') } },
    { interrupt: (interrupt) => void interrupts.push(interrupt) },
  );
  // The tunnel is cut from the host: this guest goes on holding its end.
  await open.closed;
  expect([interrupts, closed]).toEqual([[{ type: 'cancel' }], ['model']]);
  expect(await dial().answer).toBe('');
  await gate.open('check');
  expect(await dial().answer).not.toMatch(/ 200/);
  lease.renew(0);
  expect(lease.isValid()).toBe(false);
  await gate.close();
});
