import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PolicyDesk } from '../../src/policy/policy-desk.ts';
import { FakeNode, keyOf } from '../support/fake-node.ts';
import { startTestServer } from '../support/running-server.ts';

let folder: string;
let policyFile: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-policy-'));
  policyFile = join(folder, 'policy.yaml');
});
afterAll(async () => rm(folder, { recursive: true, force: true }));
beforeEach(async () => write('a.example'));

const write = async (host: string, more = '') => writeFile(policyFile, `version: 1\nmissions: { run: [${host}] }\n${more}`);

/** A desk whose log and listener are seen. */
async function openDesk() {
  const logged: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line).msg) });
  const desk = await PolicyDesk.open({ policyFile, ceiling: null, backends: [] }, log);
  let told = 0;
  desk.onReplaced(async () => {
    told += 1;
  });
  const hosts = () => desk.policy.missions.run.map(({ rule }) => rule.host);
  return { desk, logged, hosts, told: () => told };
}

describe('a changed policy file', () => {
  it('takes the place of the one before as a whole, once for each change', async () => {
    const { desk, hosts, told, logged } = await openDesk();
    expect(await desk.reload()).toBe('same');
    await write('b.example');
    expect([await desk.reload(), await desk.reload()]).toEqual(['replaced', 'same']);
    expect([hosts(), told(), logged]).toEqual([['b.example'], 1, ['the policy was replaced']]);
  });

  it.each([
    ['is not valid', async () => writeFile(policyFile, 'version: 1\npreset: open\nmissons: {}\n')],
    ['is empty', async () => writeFile(policyFile, '')],
    ['is half of one', async () => writeFile(policyFile, 'version: 1\nmissions: { run: [b.exam')],
    ['is gone', async () => rm(policyFile)],
  ])('changes nothing where it %s, is told once, and is taken when it is mended', async (_how, spoil) => {
    const { desk, hosts, told, logged } = await openDesk();
    const { digest } = desk.origin;
    await spoil();
    expect([await desk.reload(), await desk.reload()]).toEqual(['refused', 'refused']);
    expect([hosts(), told(), desk.origin.digest, desk.fileIsGood]).toEqual([['a.example'], 0, digest, false]);
    expect(logged).toEqual(['the changed policy cannot be used; the one before stays']);
    await write('c.example');
    expect(await desk.reload()).toBe('replaced');
    expect([hosts(), desk.fileIsGood, Object.fromEntries(desk.results)]).toEqual([['c.example'], true, { refused: 1, replaced: 1 }]);
  });

  it('that is looked at by several at once is taken once', async () => {
    const { desk, told } = await openDesk();
    await write('b.example');
    expect((await Promise.all([desk.reload(), desk.reload(), desk.reload()])).sort()).toEqual(['replaced', 'same', 'same']);
    expect(told()).toBe(1);
  });
});

describe('a running server', () => {
  let databases: TestDatabaseServer;
  beforeAll(async () => {
    databases = await startTestDatabase();
  });
  afterAll(async () => databases.stop());

  it('tells the nodes of its open turns what they may reach now, by itself, and again when a node comes back', async () => {
    const server = await startTestServer({ policyFile }, databases);
    const node = await FakeNode.connect(server);
    const json = {
      title: 'Look around',
      repository: { kind: 'none' },
      phases: [{ kind: 'research', task: 'x' }],
      agent: { command: 'true' },
      egress: { allow: ['b.example'] },
      allowUnisolated: true,
    };
    expect((await server.call('POST', '/v1/missions', { json })).status).toBe(201);
    const { spec } = await node.accept();
    expect(spec.egress.allow).toEqual(['a.example']);
    await write('b.example');
    const told = await node.next('lease.ack');
    expect(told).toMatchObject({ id: 0, renewed: [], lost: [] });
    expect(told.egress).toMatchObject([{ ...keyOf(spec), egress: { allow: ['b.example'], ceiling: ['b.example'], setupAllow: [] } }]);
    const metrics = String((await server.call('GET', '/metrics')).body);
    expect(metrics).toContain('firecrew_policy_reloads_total{result="replaced"} 1');
    expect(metrics).toContain('firecrew_policy_file_good 1');
    await writeFile(policyFile, 'nothing of the kind');
    await expect.poll(async () => String((await server.call('GET', '/metrics')).body)).toContain('firecrew_policy_file_good 0');
    node.close();
    await server.stop();
  });
});
