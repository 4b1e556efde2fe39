import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../support/running-server.ts';

const POLICY = `
version: 1
preset: install
ceiling: { setup: [.packages.example] }
rules:
  docs: { parts: [run], allow: [docs.example] }
`;
const mission = (egress: unknown) => ({
  title: 'Look around',
  repository: { kind: 'none' },
  phases: [{ kind: 'research', task: 'x', setup: 'true' }],
  agent: { command: 'true' },
  egress,
});

let folder: string;
let databases: TestDatabaseServer;
let server: TestServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-asked-'));
  databases = await startTestDatabase();
  await writeFile(join(folder, 'policy.yaml'), POLICY);
  server = await startTestServer({ policyFile: join(folder, 'policy.yaml') }, databases);
});
afterAll(async () => {
  await server.stop();
  await databases.stop();
  await rm(folder, { recursive: true, force: true });
});

const create = (egress: unknown) => server.call('POST', '/v1/missions', { json: mission(egress) });
const count = async () => ((await server.call('GET', '/v1/missions?limit=500')).body as { missions: unknown[] }).missions.length;

describe('a mission that asks above the ceiling', () => {
  const asked = { allow: ['api.example', 'rule:docs'], setupAllow: ['npm.packages.example', 'other.example:8443'] };

  it('is told which hosts, what stands in the way and what to do: in the answer, in its view and in its timeline', async () => {
    const { status, body } = await create(asked);
    const { id, warnings } = body as { id: string; warnings: { message: string; action: string }[] };
    expect([status, warnings]).toEqual([
      201,
      [
        expect.objectContaining({
          code: 'policy_above_ceiling',
          part: 'setup',
          origin: 'mission',
          entry: 'other.example:8443',
          bound: 'ceiling',
        }),
        expect.objectContaining({ code: 'policy_above_ceiling', part: 'run', origin: 'mission', entry: 'api.example', bound: 'preset' }),
      ],
    ]);
    expect(warnings.map(({ message, action }) => [message, action])).toEqual([
      [
        `the set-up will not reach other.example:8443: it is above the ceiling of ${join(folder, 'policy.yaml')}`,
        `Ask the operator of this server to raise ceiling.setup by other.example:8443, or leave it out. Why: firecrew policy check other.example:8443 --mission ${id} --phase setup`,
      ],
      [
        `the agent and its check will not reach api.example: it is above the preset install of ${join(folder, 'policy.yaml')}`,
        `Ask the operator of this server to name api.example for run in a rule, or leave it out. Why: firecrew policy check api.example --mission ${id}`,
      ],
    ]);
    expect((await server.call('GET', `/v1/missions/${id}`)).body).toMatchObject({ warnings });
    const { events } = (await server.call('GET', `/v1/missions/${id}/events`)).body as {
      events: { body: { kind: string; warning?: unknown } }[];
    };
    expect(events.slice(0, 3).map(({ body: { kind, warning } }) => [kind, warning])).toEqual([
      ['mission.created', undefined],
      ['notice', warnings[0]],
      ['notice', warnings[1]],
    ]);
  });

  it('is refused where it is strict, before anything is stored', async () => {
    const before = await count();
    const { status, body } = await create({ ...asked, strict: true });
    expect([status, body]).toMatchObject([
      400,
      { error: { code: 'policy_above_ceiling', message: expect.stringMatching(/other\.example:8443.*; .*api\.example/) } },
    ]);
    expect(await count()).toBe(before);
  });

  it('may ask before it sends anything', async () => {
    const ask = async (egress: unknown) => await server.call('POST', '/v1/policy/ask', { json: { egress } });
    expect(await ask(asked)).toMatchObject({
      status: 200,
      body: { warnings: [{ entry: 'other.example:8443' }, { entry: 'api.example' }] },
    });
    expect(await ask({ ...asked, strict: true })).toMatchObject({ status: 400, body: { error: { code: 'policy_above_ceiling' } } });
    expect(await ask({ allow: ['rule:absent'] })).toMatchObject({ status: 400, body: { error: { code: 'policy_rule_unknown' } } });
    expect(await ask({ allow: ['rule:docs'], strict: true })).toMatchObject({ status: 200, body: { warnings: [] } });
  });

  it('is told nothing where it gets all it asks for', async () => {
    const { body } = await create({ allow: ['rule:docs'], setupAllow: ['a.packages.example'], strict: true });
    expect(body).not.toHaveProperty('warnings');
  });
});
