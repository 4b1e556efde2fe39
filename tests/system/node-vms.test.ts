import { join } from 'node:path';
import type { NodeVm } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

describe('what a node says is on it', { timeout: 120_000 }, () => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap: 'auto' });
  });
  afterAll(() => installation.stop());

  it('is the sandbox of the agent, then that of the check, each in the one slot of its attempt, and nothing once it ended', async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', 'r'), { 'a.txt': 'a\n' });
    const { id } = await installation.startMission({ repository, agent: 'echo b > a.txt; sleep 12', check: 'sleep 300' });
    const seen = async (kind: NodeVm['kind']) =>
      await until(`a sandbox for: ${kind}`, async () => {
        const [node] = (await installation.client.fleet()).nodes;
        const vms = node?.vms?.status === 'known' ? node.vms.vms : [];
        return vms[0]?.kind === kind ? { vms, verdict: node?.verdict } : undefined;
      });
    const working = await seen('agent');
    const { turnId } = await installation.attempt(id);
    expect(working).toMatchObject({ vms: [{ turnId, attempt: 1, name: '1a', demand: { driver: 'process' } }], verdict: { committed: 1 } });
    expect(await seen('check')).toMatchObject({ vms: [{ turnId, attempt: 1, name: '1v' }], verdict: { committed: 1 } });
    await installation.client.cancel(id);
    await installation.ended(id);
    await until('a node with nothing on it', async () => {
      const [node] = (await installation.client.fleet()).nodes;
      return node?.vms?.status === 'known' && node.vms.vms.length === 0 && node.verdict.committed === 0;
    });
  });
});
