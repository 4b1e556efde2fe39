import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { descendants, isRunning, sendSignal } from './support/processes.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n' };
/** An agent that says when it is half done, waits to be let go on, and finishes. */
const AGENT = (gate: string) => `
  say started-${gate}; echo "first half"; echo one > first.txt
  wait_for ${gate}
  echo "second half"; echo 'module.exports = (a, b) => a + b;' > add.js; say finished-${gate}`;

const needsRoot = process.getuid?.() === 0 ? '' : ' (not run: needs root)';

// With bubblewrap the same faults are brought about at every step in a test of its own.
describe('an installation without bubblewrap', () => {
  let installation: Installation;
  let undisturbed: string;

  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap: 'off', lease: { ttlMs: 40_000, renewEveryMs: 1_000 } });
    undisturbed = await runWith(async () => undefined);
  });
  afterAll(async () => await installation.stop());

  /** Runs the same mission with a fault in the middle of the agent's work; gives the tree that was delivered. */
  async function runWith(fault: (missionId: string) => Promise<void>): Promise<string> {
    const gate = randomBytes(6).toString('hex');
    const repository = await makeRepository(join(installation.home, 'scratch', gate), FILES);
    const mission = await installation.startMission({ repository, agent: AGENT(gate), check: 'node test.js' });
    await installation.witness.waitFor(`started-${gate}`);
    await fault(mission.id);
    installation.witness.open(gate);
    const { end } = await installation.ended(mission.id);
    expect(end).toMatchObject({
      missionState: 'completed',
      outcome: { kind: 'completed' },
      delivery: { state: 'delivered', verified: true },
    });
    expect(installation.witness.saw(`started-${gate}`)).toHaveLength(1);
    expect(installation.witness.saw(`finished-${gate}`)).toHaveLength(1);
    expect((await installation.log(mission.id, 1)).toString()).toMatch(/first half\nsecond half\n/);
    const delivered = await fetchDelivery(installation.client, mission.id, repository, join(repository, '.git', 'delivery.pack'));
    expect(await filesAt(repository, delivered.commit)).toEqual({
      ...FILES,
      'add.js': expect.stringContaining('a + b'),
      'first.txt': 'one\n',
    });
    return delivered.tree;
  }

  it.skipIf(process.getuid?.() !== 0)(`runs the agent and its check as two users of the host${needsRoot}`, async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', 'users'), FILES);
    const check = 'test "$(id -u)" -ne "$(cat uid.txt)" && test "$(id -u)" -ne 0 && test "$(cat uid.txt)" -ne 0';
    const mission = await installation.startMission({ repository, agent: 'id -u > uid.txt', check });
    expect((await installation.ended(mission.id)).end).toMatchObject({ outcome: { kind: 'completed' }, delivery: { verified: true } });
  });

  it('delivers the same tree when the server is killed while the agent works', async () => {
    const tree = await runWith(async () => {
      await installation.server.end('SIGKILL');
      installation.server.start();
      await installation.ready();
    });
    expect(tree).toBe(undisturbed);
  });

  it('delivers the same tree when the server is killed and comes back four hours earlier', async () => {
    const { server: clock } = installation.clocks;
    clock.set(2);
    const tree = await runWith(async () => {
      await installation.server.end('SIGKILL');
      clock.set(-2);
      installation.server.start();
      await installation.ready();
    });
    clock.set(0);
    expect(tree).toBe(undisturbed);
  });

  it('delivers the same tree when the agent ends while the server is down', async () => {
    const tree = await runWith(async (id) => {
      const { folder } = await installation.attempt(id);
      await installation.server.end('SIGKILL');
      for (const gate of installation.witness.sightings.map((item) => item.what.replace('started-', ''))) installation.witness.open(gate);
      await until('the outcome in the turn folder', async () => (await readFile(join(folder, 'outcome.json'))).length > 0);
      installation.server.start();
      await installation.ready();
    });
    expect(tree).toBe(undisturbed);
  });

  it('delivers the same tree when the node agent is killed while the agent works', async () => {
    const tree = await runWith(async (id) => {
      const shim = await installation.shimPid(await installation.attempt(id));
      await installation.node.end('SIGKILL');
      expect(isRunning(shim)).toBe(true);
      installation.node.start();
      await installation.ready();
      expect(isRunning(shim)).toBe(true);
    });
    expect(tree).toBe(undisturbed);
  });

  it('delivers the same tree when server and node agent are killed together', async () => {
    const tree = await runWith(async () => {
      await Promise.all([installation.server.end('SIGKILL'), installation.node.end('SIGKILL')]);
      installation.node.start();
      installation.server.start();
      await installation.ready();
    });
    expect(tree).toBe(undisturbed);
  });

  it.each(['its first process', 'all its processes'])('delivers the same tree when the database loses %s', async (which) => {
    const tree = await runWith(async () => {
      const pid = installation.databasePid;
      const children = descendants(pid);
      sendSignal(pid, 'SIGKILL');
      if (which === 'all its processes') for (const child of children) sendSignal(child.pid, 'SIGKILL');
      await installation.restartDatabase();
      await installation.ready();
    });
    expect(tree).toBe(undisturbed);
  });
});
