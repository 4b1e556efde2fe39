import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import type { EgressLine, TurnEgress, TurnEventBody } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { EgressGate, MAX_EGRESS_LINES, MAX_REFUSAL_LINES_PER_KIND } from '../../src/shim/egress-gate.ts';
import { takeEgress } from '../../src/shim/take-egress.ts';
import { turnSpec } from './turn-spec.ts';

/** What the specification of the tests says, changed. */
function reach(over: Partial<TurnEgress>): TurnEgress {
  const { egress, setup } = turnSpec();
  return { revision: 'b'.repeat(64), ...egress, setupAllow: setup?.allow ?? [], ...over };
}

function gateWith(over: Partial<ConstructorParameters<typeof EgressGate>[0]> = {}) {
  const lines: EgressLine[] = [];
  const gate = new EgressGate({
    spec: turnSpec(),
    leaseValid: () => true,
    audit: (line) => void lines.push(line),
    serverAddresses: [],
    ...over,
  });
  return { gate, lines };
}

/** Asks for a tunnel as a guest would, and gives the status line of the answer, empty where there is none. */
async function ask(gate: EgressGate, target: string): Promise<string> {
  const server = createServer({ allowHalfOpen: true }, (socket) => gate.handle(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const guest = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const parts: Buffer[] = [];
  guest.on('error', () => undefined);
  guest.on('data', (part: Buffer) => parts.push(part));
  guest.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await once(guest, 'close');
  server.close();
  return Buffer.concat(parts).toString().split('\r\n')[0] ?? '';
}

describe('the egress gate of an attempt', () => {
  it('has a policy of its own for the set-up, which the agent does not get, and the other way round', async () => {
    const { gate, lines } = gateWith();
    await gate.open('setup');
    await ask(gate, 'agent.example:443');
    await gate.open('agent');
    await ask(gate, 'setup.example:443');
    expect(lines.map((line) => [line.purpose, line.host, line.verdict])).toEqual([
      ['setup', 'agent.example', 'denied'],
      ['agent', 'setup.example', 'denied'],
    ]);
    await gate.close();
  });

  it('numbers the connections of an attempt each once, whatever it is open for', async () => {
    const { gate, lines } = gateWith();
    for (const purpose of ['setup', 'agent', 'check', 'agent'] as const) {
      await gate.open(purpose);
      for (let n = 0; n < 2; n += 1) await ask(gate, 'other.example:443');
    }
    expect(lines.map(({ connection }) => connection)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await gate.close();
  });

  it('lets nothing out while no command runs', async () => {
    const { gate, lines } = gateWith();
    expect(await ask(gate, 'agent.example:443')).toBe('');
    await gate.open('agent');
    await gate.close();
    expect(await ask(gate, 'agent.example:443')).toBe('');
    expect(lines).toEqual([]);
  });

  it('keeps to the ceiling of the operator, whatever the mission asks for', async () => {
    const spec = turnSpec({ egress: { allow: ['agent.example'], ceiling: [], addressRules: [] } });
    const { gate, lines } = gateWith({ spec });
    await gate.open('agent');
    expect(await ask(gate, 'agent.example:443')).toContain('403');
    expect(lines[0]?.verdict).toBe('denied');
    await gate.close();
  });

  it('writes a bounded number of lines for a guest that asks for the same host again and again, and counts them all', async () => {
    const { gate, lines } = gateWith();
    await gate.open('agent');
    const asked = MAX_REFUSAL_LINES_PER_KIND + 20;
    for (let count = 0; count < asked; count += 1) await ask(gate, 'other.example:443');
    expect(lines).toHaveLength(MAX_REFUSAL_LINES_PER_KIND);
    expect(gate.summary().denied).toEqual([{ host: 'other.example', port: 443, reason: 'not_listed', connections: asked }]);
    expect(gate.isFull).toBe(false);
    await gate.close();
  });

  it('writes no audit line, and opens nothing, when the audit cannot be written', async () => {
    const { gate } = gateWith({
      audit: () => {
        throw new Error('the disk is full');
      },
    });
    await gate.open('agent');
    expect(await ask(gate, 'agent.example:443')).not.toContain(' 200 ');
    await gate.close();
  });

  it('takes another reach at once, for the part that is open and for the one that follows', async () => {
    const { gate, lines } = gateWith();
    await gate.open('agent');
    expect(gate.replace(reach({ allow: ['other.example'], setupAllow: ['more.example'] }))).toEqual({ cut: 0 });
    for (const host of ['agent.example', 'other.example']) await ask(gate, `${host}:443`);
    await gate.open('setup');
    for (const host of ['setup.example', 'more.example']) await ask(gate, `${host}:443`);
    const refused = lines.filter(({ verdict }) => verdict === 'denied').map(({ purpose, host }) => [purpose, host]);
    expect(refused).toEqual([
      ['agent', 'agent.example'],
      ['setup', 'setup.example'],
    ]);
    expect([gate.revision, gate.wasReplaced]).toEqual(['b'.repeat(64), true]);
    await gate.close();
  });

  it('takes one that says the same for what it is, and keeps to the one before where the other cannot be read', async () => {
    const { gate } = gateWith();
    await gate.open('agent');
    expect(gate.replace(reach({}))).toBe('same');
    expect([gate.revision, gate.wasReplaced]).toEqual(['b'.repeat(64), false]);
    for (const bad of [{ allow: ['*'] }, { setupAllow: ['10.0.0.1'] }, { ceiling: ['https://x'] }]) {
      expect(() => gate.replace({ ...reach({ allow: ['other.example'], ...bad }), revision: 'c'.repeat(64) })).toThrow(/egress/);
    }
    expect(await ask(gate, 'other.example:443')).toContain('403');
    expect([gate.revision, gate.wasReplaced]).toEqual(['b'.repeat(64), false]);
    await gate.close();
  });

  it('keeps one sum of what passed over the parts of an attempt, and takes other budgets at once', async () => {
    const upstream = createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const target = `localhost:${(upstream.address() as AddressInfo).port}`;
    const addressRules = [{ host: 'localhost', addresses: ['127.0.0.1', '::1'] }];
    const allow = [`${target}/tcp`];
    const egress = { allow, ceiling: null, addressRules, budgets: { hosts: [{ host: 'localhost', connections: 1 }] } };
    const { gate, lines } = gateWith({ spec: turnSpec({ egress, setup: { command: 'true', allow, timeoutMs: 1_000 } }) });
    await gate.open('setup');
    expect(await ask(gate, target)).toContain(' 200 ');
    await gate.open('agent');
    expect(await ask(gate, target)).toContain('403 Forbidden (host_connections_spent)');
    expect(gate.replace(reach({ ...egress, setupAllow: allow, budgets: { turn: { connections: 2 } } }))).toEqual({ cut: 0 });
    expect(await ask(gate, target)).toContain(' 200 ');
    expect(await ask(gate, target)).toContain('403 Forbidden (turn_connections_spent)');
    expect(lines.filter(({ event }) => event === 'refused').map(({ reason, rule }) => [reason, rule])).toEqual([
      ['host_connections_spent', 'budget localhost: 1 connections'],
      ['turn_connections_spent', 'budget turn: 2 connections'],
    ]);
    await gate.close();
    upstream.close();
  });

  it('tells in the timeline what it took, and what it did not', () => {
    const { gate } = gateWith();
    const told: string[] = [];
    const events = { add: (body: TurnEventBody) => void told.push(body.kind === 'notice' ? `${body.level} ${body.code}` : body.kind) };
    const take = (egress: TurnEgress) => takeEgress({ gate, events }, egress);
    take(reach({}));
    take(reach({ allow: ['*'] }));
    take(reach({ allow: [] }));
    expect(told).toEqual(['warning egress_policy_refused', 'info egress_policy_replaced']);
  });

  it('notes what each part may reach, as it is in force', async () => {
    const notes: string[] = [];
    const { gate } = gateWith({ note: (text) => void notes.push(text) });
    await gate.open('setup');
    await gate.open('agent');
    gate.replace(reach({ allow: ['.b.example', 'a.example:8443'], ceiling: ['.b.example'] }));
    gate.replace(reach({ allow: [] }));
    expect(notes).toEqual([
      'egress for the setup: setup.example',
      'egress for the agent: agent.example',
      'egress for the agent: .b.example',
      'egress for the agent: nothing',
    ]);
    await gate.close();
  });

  it('has a limit of lines that is a number', () => {
    expect([MAX_REFUSAL_LINES_PER_KIND, MAX_EGRESS_LINES]).toEqual([100, 50_000]);
  });
});
