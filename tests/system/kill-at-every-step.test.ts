import { join } from 'node:path';
import type { MissionEvent } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { sendSignal } from './support/processes.ts';
import { fetchDelivery, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n' };

/** What happened, as one word: `turn.placed`, `step agent`, `collected`. */
function nameOf({ body }: MissionEvent): string {
  if (body.kind !== 'turn.event') return body.kind;
  return body.body.kind === 'step' ? `step ${body.body.step}` : body.body.kind;
}

describe('a mission of two rounds', () => {
  let installation: Installation;
  let count = 0;
  let undisturbed: Awaited<ReturnType<typeof run>>;

  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap: 'auto', lease: { ttlMs: 40_000, renewEveryMs: 1_000 } });
    undisturbed = await run([], async () => undefined);
  });
  afterAll(async () => await installation.stop());

  /** Runs the mission and brings a fault about as soon as one of `moments` is seen, each time it is. */
  async function run(moments: readonly string[], fault: () => Promise<void>) {
    count += 1;
    const before = installation.witness.sightings.length;
    const repository = await makeRepository(join(installation.home, 'scratch', `r${count}`), FILES);
    const agent = `echo "round $FIRECREW_ROUND"; say "round-$FIRECREW_ROUND"; echo "$FIRECREW_ROUND" >> rounds.txt
      if [ "$FIRECREW_ROUND" = 2 ]; then echo 'module.exports = (a, b) => a + b;' > add.js; fi`;
    const { id } = await installation.startMission({ repository, agent, check: 'node test.js' });
    let faults = 0;
    for (let after = 0; ; ) {
      const page = await installation.client.listEvents(id, after).catch(() => []);
      for (const event of page) {
        after = event.seq;
        if (!moments.includes(nameOf(event))) continue;
        faults += 1;
        await fault();
      }
      if (page.some((event) => event.body.kind === 'mission.ended')) break;
      if (page.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const { end, phases } = await installation.ended(id);
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    const events = await until('all events', async () => await installation.client.listEvents(id));
    return {
      faults,
      outcome: end.outcome,
      verified: end.delivery?.verified,
      attempts: phases[0]?.attempts.length,
      tree: delivered.tree,
      told: installation.witness.sightings.slice(before).map((item) => item.what),
      log: (await installation.log(id, 1)).toString(),
      events: events.filter((event) => event.body.kind !== 'turn.waiting').map(nameOf),
      sequence: events.flatMap(({ body }) => (body.kind === 'turn.event' ? [body.seq] : [])),
    };
  }

  const AFTER_LAUNCH = ['turn.accepted', 'step agent', 'agent.ended', 'collected', 'step verifying', 'gate', 'attempt.ended', 'turn.ended'];

  it.each([
    ['the server', ['turn.placed', ...AFTER_LAUNCH, 'delivery']],
    ['the node agent', ['turn.placed', ...AFTER_LAUNCH]],
    ['the database', ['turn.placed', 'collected', 'attempt.ended', 'delivery']],
  ])('comes to the same end when %s is killed at every step', async (victim, moments) => {
    const disturbed = await run(moments, async () => {
      if (victim === 'the server') {
        await installation.server.end('SIGKILL');
        installation.server.start();
      } else if (victim === 'the node agent') {
        await installation.node.end('SIGKILL');
        installation.node.start();
      } else {
        sendSignal(installation.databasePid, 'SIGKILL');
        await installation.restartDatabase();
      }
    });
    expect(disturbed.faults).toBeGreaterThanOrEqual(moments.length);
    expect({ ...disturbed, faults: 0 }).toEqual(undisturbed);
    expect(undisturbed).toMatchObject({ outcome: { kind: 'completed' }, verified: true, attempts: 1, told: ['round-1', 'round-2'] });
    expect(undisturbed.sequence).toEqual(undisturbed.sequence.map((_, index) => index + 1));
  });
});
