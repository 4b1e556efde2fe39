import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Duplex, duplexPair } from 'node:stream';
import { createCredentialBroker, newHandle } from '@firecrew/credential-broker';
import { readUpstream } from '@firecrew/model-route';
import type { TurnEventBody } from '@firecrew/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelLaunch } from '../../src/model/model-launch.ts';
import { MAX_MODEL_REFUSAL_LINES, ModelGate } from '../../src/shim/model-gate.ts';

const BODY = JSON.stringify({ model: 'm', max_tokens: 1, messages: [] });
const requestOf = (path: string, body = BODY) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function makeGate(status = 200, launch: Partial<ModelLaunch> = {}) {
  const events: TurnEventBody[] = [];
  const upstream = createServer((_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}'),
  ).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'fc-gate-'));
  const handle = newHandle();
  const broker = createCredentialBroker();
  broker.setRoute('command', {
    format: 'anthropic_messages',
    upstream: readUpstream(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`),
  });
  broker.setCredential('command', launch.hasCredential === false ? null : 'sk-0123456789');
  broker.setHandles([{ handle, route: 'command', validUntilMs: Number.POSITIVE_INFINITY }]);
  broker.server.listen(join(folder, 'b.sock'));
  await once(broker.server, 'listening');
  const gate = new ModelGate({
    launch: {
      format: 'anthropic_messages',
      broker: join(folder, 'b.sock'),
      header: null,
      features: [],
      models: null,
      outputCap: null,
      budget: { tokens: null, micros: null },
      prices: null,
      hasCredential: true,
      ...launch,
    },
    backend: 'command',
    leaseValid: () => true,
    event: (body) => events.push(body),
  });
  closing.push(() => {
    gate.close();
    broker.close();
    upstream.close();
    rmSync(folder, { recursive: true });
  });
  const notices = () => events.flatMap((event) => (event.kind === 'notice' ? [event] : []));
  return { gate, handle, notices };
}

async function ask(gate: ModelGate, text: string): Promise<string> {
  const [guest, host]: Duplex[] = duplexPair({ allowHalfOpen: true });
  if (guest === undefined || host === undefined) throw new Error('no pair');
  gate.handle(host);
  guest.write(text);
  const parts: Buffer[] = [];
  for await (const part of guest) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

describe('the model gate of an attempt', () => {
  it('is shut until the agent runs, and again after it', async () => {
    const { gate, handle } = await makeGate();
    gate.decide('vm');
    gate.setHandle(handle);
    expect(await ask(gate, requestOf('/v1/messages'))).toContain('x-firecrew-reason: route_closed');
    gate.open();
    expect(await ask(gate, requestOf('/v1/messages'))).toMatch(/^HTTP\/1\.1 200 /);
    gate.close();
    expect(await ask(gate, requestOf('/v1/messages'))).toContain('x-firecrew-reason: route_closed');
    gate.open();
    expect(await ask(gate, requestOf('/v1/messages'))).toMatch(/^HTTP\/1\.1 200 /);
    expect(gate.summary()).toMatchObject({ calls: 2, unreadCalls: 2, refused: 2 });
  });

  it('is not offered where nothing isolates the guest, whatever is opened and given', async () => {
    const { gate, handle, notices } = await makeGate();
    gate.decide('none');
    gate.setHandle(handle);
    gate.open();
    expect(gate.isOffered).toBe(false);
    expect(await ask(gate, requestOf('/v1/messages'))).toContain('x-firecrew-reason: isolation_missing');
    expect(notices()).toMatchObject([{ level: 'warning', code: 'model_route_not_offered' }]);
  });

  it('tells of a credential that the provider refuses, with the backend', async () => {
    const { gate, handle, notices } = await makeGate(403);
    gate.decide('bubblewrap');
    gate.setHandle(handle);
    gate.open();
    await ask(gate, requestOf('/v1/messages'));
    expect(notices().map(({ code }) => code)).toEqual(['model_call_open', 'model_call_end', 'model_credential_refused']);
    expect(notices()[2]?.message).toContain('the model route of command (status 403)');
  });

  it('does not blame a credential that it does not have', async () => {
    const { gate, handle, notices } = await makeGate(401, { hasCredential: false });
    gate.decide('vm');
    gate.setHandle(handle);
    gate.open();
    await ask(gate, requestOf('/v1/messages'));
    expect(notices().map(({ code }) => code)).toEqual(['model_call_open', 'model_call_end']);
  });

  it('names the features that were refused, and bounds the lines of a guest that asks in a loop', async () => {
    const { gate, notices } = await makeGate();
    gate.decide('vm');
    gate.open();
    await ask(gate, requestOf('/v1/messages', JSON.stringify({ model: 'm', messages: [], mcp_servers: [{}] })));
    expect(notices()[0]).toMatchObject({
      level: 'warning',
      code: 'model_call_refused',
      call: { reason: 'feature_refused', features: ['remote_mcp'] },
    });
    for (let count = 0; count < MAX_MODEL_REFUSAL_LINES + 20; count += 1) await ask(gate, requestOf('/elsewhere'));
    expect(notices()).toHaveLength(MAX_MODEL_REFUSAL_LINES);
    expect(gate.summary()?.refused).toBe(MAX_MODEL_REFUSAL_LINES + 21);
  });

  it('has nothing to say where a backend has no route', () => {
    const gate = new ModelGate({ launch: null, backend: 'command', leaseValid: () => true, event: () => undefined });
    expect([gate.exists, gate.isOffered, gate.summary()]).toEqual([false, false, undefined]);
  });
});
