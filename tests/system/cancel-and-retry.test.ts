import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { processesOfAttempt } from './support/processes.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n' };
const STUBBORN = (gate: string) => `echo half > half.txt; say started-${gate}; trap '' TERM; while :; do sleep 1; done`;

describe('a mission', () => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap: 'auto' });
  });
  afterAll(async () => await installation.stop());

  async function newRepository(): Promise<{ gate: string; repository: string }> {
    const gate = randomBytes(6).toString('hex');
    return { gate, repository: await makeRepository(join(installation.home, 'scratch', gate), FILES) };
  }

  async function expectCancelled(id: string, repository: string): Promise<void> {
    const { end, phases } = await installation.ended(id);
    expect(end).toMatchObject({ missionState: 'cancelled', exitCode: 3, outcome: { kind: 'cancelled' }, delivery: { verified: false } });
    expect(phases[0]?.attempts.map((item) => item.outcome)).toEqual([{ kind: 'cancelled' }]);
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect(delivered.branch).toMatch(/^firecrew\/.*-wip$/);
    expect(await filesAt(repository, delivered.commit)).toEqual({ ...FILES, 'half.txt': 'half\n' });
    const { marker } = await installation.attempt(id);
    await until('no process of the cancelled attempt', () => processesOfAttempt(marker).length === 0);
  }

  it('that is cancelled while its agent works brings the work back on a branch of its own', async () => {
    const { gate, repository } = await newRepository();
    const { id } = await installation.startMission({ repository, agent: STUBBORN(gate), check: 'true' });
    await installation.witness.waitFor(`started-${gate}`);
    await installation.client.cancel(id);
    await expectCancelled(id, repository);
  });

  it('that is cancelled while its node agent is away is ended when that is back', async () => {
    const { gate, repository } = await newRepository();
    const { id } = await installation.startMission({ repository, agent: STUBBORN(gate), check: 'true' });
    await installation.witness.waitFor(`started-${gate}`);
    await installation.node.end('SIGKILL');
    await installation.client.cancel(id);
    installation.node.start();
    await expectCancelled(id, repository);
  });

  it('that is cancelled right before the server is killed is ended by the next one', async () => {
    const { gate, repository } = await newRepository();
    const { id } = await installation.startMission({ repository, agent: STUBBORN(gate), check: 'true' });
    await installation.witness.waitFor(`started-${gate}`);
    await installation.client.cancel(id);
    await installation.server.end('SIGKILL');
    installation.server.start();
    await installation.ready();
    await expectCancelled(id, repository);
  });

  it('that is cancelled before it is placed never runs', async () => {
    const { gate, repository } = await newRepository();
    await installation.node.end('SIGTERM');
    const { id } = await installation.startMission({ repository, agent: `say started-${gate}` });
    await until('a mission that waits', async () => (await installation.client.mission(id)).waiting !== null);
    await installation.client.cancel(id);
    const { end, phases } = await installation.ended(id);
    expect(end).toMatchObject({ missionState: 'cancelled', exitCode: 3, delivery: null });
    expect(phases[0]?.attempts).toEqual([]);
    installation.node.start();
    await installation.ready();
    expect(installation.witness.saw(`started-${gate}`)).toEqual([]);
  });

  it('that has ended is not cancelled again', async () => {
    const { repository } = await newRepository();
    const { id } = await installation.startMission({ repository, agent: 'echo done > done.txt' });
    await installation.ended(id);
    await expect(installation.client.cancel(id)).rejects.toMatchObject({ code: 'mission_ended' });
  });

  it('goes on with a retry of its failed phase and of what that made unreachable', async () => {
    const { gate, repository } = await newRepository();
    const phase = (task: string) => ({ kind: 'coding' as const, task, doneWhenCheck: 'test -e good.txt' });
    const agent = `if is_open ${gate}; then echo "$FIRECREW_ROUND" >> good.txt; echo x > "$(cut -c1-5 "$FIRECREW_TASK_FILE" | head -1)"; else echo bad > bad.txt; fi`;
    const { id } = await installation.startMission({
      repository,
      agent,
      extra: { phases: [phase('first'), phase('second')] },
    });
    const failed = await installation.ended(id);
    expect(failed.phases.map((item) => item.state)).toEqual(['failed', 'skipped']);
    expect(failed.end).toMatchObject({
      missionState: 'failed',
      exitCode: 1,
      outcome: { kind: 'gate_capped' },
      delivery: { verified: false },
    });
    expect(failed.end.delivery?.branch).toMatch(/-wip$/);
    installation.witness.open(gate);
    expect(await installation.client.retry(id)).toMatchObject({ phaseId: failed.phases[0]?.id, reopened: 1 });
    const retried = await until('the end of the retried mission', async () => {
      const view = await installation.ended(id);
      return view.state === 'completed' ? view : undefined;
    });
    expect(retried.phases.map((item) => item.state)).toEqual(['completed', 'completed']);
    expect(retried.end).toMatchObject({ missionState: 'completed', exitCode: 0, delivery: { verified: true } });
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect(delivered.branch).not.toMatch(/-wip$/);
    expect(Object.keys(await filesAt(repository, delivered.commit)).sort()).toEqual(['add.js', 'first', 'good.txt', 'secon']);
  });
});
