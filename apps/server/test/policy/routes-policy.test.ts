import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EgressLine } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeNode } from '../support/fake-node.ts';
import { startTestServer, type TestServer } from '../support/running-server.ts';

const POLICY = `
version: 1
preset: named
rules:
  packages: { parts: [setup], allow: [registry.example] }
backends:
  command: { run: [api.example] }
`;
const MISSION = {
  title: 'Look around',
  repository: { kind: 'none' },
  phases: [{ kind: 'research', task: 'x', setup: 'true' }],
  agent: { command: 'true' },
  egress: { allow: ['other.example'], setupAllow: ['rule:packages'] },
  allowUnisolated: true,
};

let folder: string;
let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-policy-'));
  databases = await startTestDatabase();
  await writeFile(join(folder, 'policy.yaml'), POLICY);
  server = await startTestServer({ policyFile: join(folder, 'policy.yaml') }, databases);
  node = await FakeNode.connect(server);
});
afterAll(async () => {
  node.close();
  await server.stop();
  await databases.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Accepts the order of one mission, past those of others. */
async function acceptOf(id: string) {
  for (;;) {
    const start = await node.accept();
    if (start.spec.missionId === id) return start;
  }
}

const line = (over: Partial<EgressLine>): EgressLine => ({
  event: 'refused',
  connection: 1,
  purpose: 'agent',
  host: 'other.example',
  port: 443,
  address: null,
  verdict: 'denied',
  reason: 'not_listed',
  rule: null,
  bytesIn: null,
  bytesOut: null,
  lookupMs: null,
  connectMs: null,
  durationMs: null,
  ...over,
});

describe('the policy of a server', () => {
  it('is what its turns are told, cut to what the preset leaves', async () => {
    const created = await server.call('POST', '/v1/missions', { json: MISSION });
    const { id } = created.body as { id: string };
    const { spec } = await acceptOf(id);
    expect(spec.egress).toEqual({ allow: ['api.example'], ceiling: ['api.example', 'registry.example'], addressRules: [] });
    expect(spec.setup?.allow).toEqual(['registry.example']);
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });

  it('answers for a mission with verdict, rule and what would allow it', async () => {
    const created = await server.call('POST', '/v1/missions', { json: MISSION });
    const { id } = created.body as { id: string };
    const ask = async (query: string) => (await server.call('GET', `/v1/missions/${id}/policy/check?${query}`)).body;
    expect(await ask('host=API.example')).toMatchObject({
      verdict: 'allowed',
      rule: 'api.example',
      origin: 'backend command',
      part: 'run',
    });
    expect(await ask('host=registry.example&part=setup')).toMatchObject({ verdict: 'allowed', origin: 'rule:packages' });
    expect(await ask('host=other.example')).toMatchObject({
      verdict: 'denied',
      reason: 'above_ceiling',
      remedy: { by: 'operator', entry: 'other.example' },
    });
    expect((await server.call('GET', `/v1/missions/${id}/policy/check?host=a&port=0`)).status).toBe(400);
    const stranger = await server.addCaller('operator', false);
    for (const path of ['policy', 'policy/check?host=a'])
      expect((await server.call('GET', `/v1/missions/${id}/${path}`, { token: stranger })).status).toBe(404);
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });

  it('explains what a mission reached and was refused, counted, with what would allow it', async () => {
    const created = await server.call('POST', '/v1/missions', { json: MISSION });
    const { id } = created.body as { id: string };
    const { spec } = await acceptOf(id);
    const lines = [
      line({}),
      line({ connection: 2 }),
      line({ connection: 3, host: 'api.example', reason: 'port_not_listed', port: 8443, rule: 'api.example' }),
      line({ connection: 4, host: 'api.example', verdict: 'denied', reason: 'private_address', rule: '10.0.0.0/8' }),
      line({ connection: 5, event: 'open', host: 'api.example', verdict: 'allowed', reason: 'listed' }),
      line({
        connection: 5,
        event: 'end',
        host: 'api.example',
        verdict: 'allowed',
        reason: 'guest_closed',
        rule: 'api.example',
        bytesIn: 7,
        bytesOut: 5,
      }),
      line({
        connection: 6,
        event: 'end',
        host: 'api.example',
        verdict: 'allowed',
        reason: 'idle_timeout',
        rule: 'api.example',
        bytesIn: 1,
        bytesOut: 1,
      }),
      line({ connection: 7, host: null, port: null, verdict: 'malformed', reason: 'bad_port' }),
      line({ connection: 8, purpose: 'setup', host: 'registry.example', reason: 'empty_list' }),
    ];
    for (const [at, item] of lines.entries()) node.report(spec, at + 1, { kind: 'egress', line: item });
    await expect
      .poll(async () => (await server.call('GET', `/v1/missions/${id}/policy`)).body)
      .toEqual({
        missionId: id,
        policy: { source: join(folder, 'policy.yaml'), digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
        learning: false,
        reached: [
          {
            purpose: 'agent',
            host: 'api.example',
            port: 443,
            rule: 'api.example',
            connections: 2,
            bytesIn: 8,
            bytesOut: 6,
            remedy: null,
            allowedNow: true,
          },
        ],
        open: [],
        totals: { tunnels: 1, refusals: 6, bytesIn: 8, bytesOut: 6 },
        refused: [
          {
            purpose: 'agent',
            host: 'other.example',
            port: 443,
            reason: 'not_listed',
            rule: null,
            connections: 2,
            remedy: { by: 'operator', entry: 'other.example' },
            allowedNow: false,
          },
          expect.objectContaining({ reason: 'private_address', remedy: null, allowedNow: false }),
          expect.objectContaining({ reason: 'port_not_listed', remedy: { by: 'both', entry: 'api.example:8443' } }),
          expect.objectContaining({ host: 'registry.example', purpose: 'setup', remedy: null, allowedNow: true }),
          expect.objectContaining({ host: null, port: null, reason: 'bad_port', remedy: null }),
        ],
        truncated: false,
      });
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });

  it('counts what its nodes report, each line once', async () => {
    const created = await server.call('POST', '/v1/missions', { json: MISSION });
    const { id } = created.body as { id: string };
    const { spec } = await acceptOf(id);
    const count = async () => {
      const text = String((await server.call('GET', '/metrics')).body);
      return Number(/^firecrew_egress_connections_total\{verdict="denied",reason="numeric_host"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    };
    for (let again = 0; again < 3; again += 1) node.report(spec, 1, { kind: 'egress', line: line({ reason: 'numeric_host' }) });
    node.report(spec, 2, { kind: 'egress', line: line({ reason: 'numeric_host' }) });
    await expect.poll(count).toBe(2);
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });

  it('refuses a mission that asks for a rule which is not there', async () => {
    const reply = await server.call('POST', '/v1/missions', { json: { ...MISSION, egress: { allow: ['rule:packages'] } } });
    expect([reply.status, reply.body]).toMatchObject([400, { error: { code: 'policy_rule_unknown', action: /rule:packages \(setup\)/ } }]);
  });
});

describe('a server is not started', () => {
  it.each([
    ['with a policy that is not valid', 'version: 1\npresets: open\n', 'policy_invalid'],
    ['with a policy that is not there', null, 'policy_unreadable'],
  ])('%s', async (_what, text, code) => {
    const policyFile = join(folder, 'other.yaml');
    await rm(policyFile, { force: true });
    if (text !== null) await writeFile(policyFile, text);
    await expect(startTestServer({ policyFile }, databases)).rejects.toMatchObject({ code });
  });

  it('with a policy file and a ceiling beside it', async () => {
    await expect(startTestServer({ policyFile: join(folder, 'policy.yaml'), ceiling: [] }, databases)).rejects.toThrow(/its own ceiling/);
  });
});
