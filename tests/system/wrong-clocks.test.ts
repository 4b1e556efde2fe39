import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { Installation } from './support/installation.ts';
import { git, makeRepository } from './support/repository.ts';
import { WrongClock } from './support/wrong-clock.ts';

const FILES = { 'a.txt': 'one\n' };
const LEASE = { ttlMs: 6_000, renewEveryMs: 500 };

describe('an installation', () => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap: 'off', lease: LEASE });
  });
  afterAll(async () => await installation.stop());

  /** Runs a mission whose agent works for more than a term of its lease after `jump`; gives what the server says of it. */
  async function runWith(jump: () => Promise<void> | void) {
    const gate = randomBytes(6).toString('hex');
    const repository = await makeRepository(join(installation.home, 'scratch', gate), FILES);
    const agent = `say started-${gate}; wait_for ${gate}; sleep ${(LEASE.ttlMs * 1.5) / 1_000}; echo two > a.txt`;
    const mission = await installation.startMission({ repository, agent, check: 'grep two a.txt' });
    await installation.witness.waitFor(`started-${gate}`);
    await jump();
    installation.witness.open(gate);
    const ended = await installation.ended(mission.id);
    expect(ended.end).toMatchObject({ missionState: 'completed', delivery: { state: 'delivered', verified: true, attempt: 1 } });
    expect(ended.phases[0]?.attempts).toHaveLength(1);
    for (const { startedAt, endedAt } of ended.phases[0]?.attempts ?? [])
      expect(Date.parse(endedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(startedAt ?? ''));
    return ended;
  }

  it('does a mission in one attempt while its server is an hour behind and its node an hour ahead', async () => {
    installation.clocks.server.set(-1);
    installation.clocks.node.set(1);
    const { createdAt, endedAt } = await runWith(() => undefined);
    // The database has the right time, and it is the one of a mission.
    for (const at of [createdAt, endedAt]) expect(Math.abs(Date.parse(at ?? '') - Date.now())).toBeLessThan(120_000);
  });

  it.each([
    ['back', 1, -1],
    ['forth', -1, 1],
  ])('does a mission in one attempt while all clocks are set %s by two hours', async (_way, before, after) => {
    const { server, node } = installation.clocks;
    for (const clock of [server, node]) clock.set(before);
    await runWith(() => {
      for (const clock of [server, node]) clock.set(after);
    });
  });
});

/** The command with another time than the services that it starts: they get no `NODE_OPTIONS`. */
async function commandOff(hours: number, environment: NodeJS.ProcessEnv = {}): Promise<{ command: Command; stop: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'fcl-'));
  const clock = new WrongClock(join(folder, 'clock'));
  clock.set(hours);
  const command = await Command.make({ ...environment, NODE_OPTIONS: clock.arguments.join('=') });
  const stop = async () => {
    await command.stop();
    await rm(folder, { recursive: true });
  };
  return { command, stop };
}

describe('a command', () => {
  it('brings the work of a mission home while its clock is an hour behind that of its services', async () => {
    const { command, stop } = await commandOff(-1);
    try {
      const repository = await makeRepository(join(command.folder, 'work', 'repository'), FILES);
      const run = ['run', '--repo', repository, '--task', 'x', '--agent-cmd', 'echo two > a.txt', '--check', 'grep two a.txt'];
      const end = await command.json(run);
      expect(end).toMatchObject({ kind: 'run.ended', outcome: { kind: 'completed' }, exitCode: 0 });
      expect(await git(repository, 'show', `${String(end.branch)}:a.txt`)).toBe('two\n');
    } finally {
      await stop();
    }
  });

  it('says at once why services cannot be started, while its clock is an hour ahead of theirs', async () => {
    const { command, stop } = await commandOff(1, { FIRECREW_PG_BIN: '/nonexistent' });
    try {
      const refused = await command.run(['up']);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('/nonexistent')]);
    } finally {
      await stop();
    }
  });
});
