import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation, type SeenAttempt } from './support/installation.ts';
import { descendants, isRunning, processesOf, processesOfAttempt, sendSignal } from './support/processes.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n' };
/** Renewals, the shim's own stop at 4.8 s, and the node agent's patience fit several times into the time limit of a test. */
const LEASE = { ttlMs: 6_000, renewEveryMs: 1_000 };
/** All of an attempt is gone this long after its end was brought about. */
const GONE_WITHIN_MS = 5_000;

describe.each(['auto', 'off'] as const)('an attempt with bubblewrap %s', (bubblewrap) => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap, lease: LEASE, limits: { checkpointEveryMs: 700 } });
  });
  afterAll(async () => await installation.stop());

  /** Starts a mission whose first attempt works until it is ended from outside, and whose second one delivers. */
  async function startWork(): Promise<{
    id: string;
    gate: string;
    repository: string;
    first: SeenAttempt;
    shim: number;
    processes: readonly number[];
  }> {
    const gate = randomBytes(6).toString('hex');
    const repository = await makeRepository(join(installation.home, 'scratch', gate), FILES);
    const agent = `
      case "$FIRECREW_ATTEMPT" in
        *.1.1) echo "before the fault"; echo half > first.txt
          setsid sh -c 'while :; do sleep 1; done' & (trap '' TERM; while :; do sleep 1; done) &
          say started-${gate}; stream alive-${gate} ;;
        *) echo 'module.exports = (a, b) => a + b;' > add.js; say second-${gate} ;;
      esac`;
    const { id } = await installation.startMission({ repository, agent, check: 'node test.js' });
    const first = await installation.attempt(id);
    await installation.witness.waitFor(`alive-${gate}`);
    const shim = await installation.shimPid(first);
    return { id, gate, repository, first, shim, processes: [shim, ...descendants(shim).map(({ pid }) => pid)] };
  }

  /** Waits until nothing of the first attempt runs: neither what carries its mark nor what its shim started. */
  async function waitGone({ first, processes }: Awaited<ReturnType<typeof startWork>>): Promise<void> {
    const look = () =>
      processesOfAttempt(first.marker).length === 0 && processesOf(first.folder).length === 0 && !processes.some((pid) => isRunning(pid));
    await until(`no process of ${first.marker}`, look, GONE_WITHIN_MS);
  }

  /** Waits for the delivery of the second attempt and checks that the first one ended as `lost` and was never heard of again. */
  async function expectSecondDelivers(work: Awaited<ReturnType<typeof startWork>>, reason: string | RegExp): Promise<void> {
    const { id, gate, repository, first } = work;
    const { end, phases } = await installation.ended(id);
    expect(end).toMatchObject({ missionState: 'completed', delivery: { attempt: 2, verified: true } });
    const outcomes = phases[0]?.attempts.map((item) => item.outcome);
    expect(outcomes).toMatchObject([{ kind: 'lost', reason: expect.stringMatching(reason) }, { kind: 'completed' }]);
    const second = await installation.witness.waitFor(`second-${gate}`);
    const late = installation.witness.saw(`alive-${gate}`).filter((item) => item.atMs > second.atMs);
    expect(late).toEqual([]);
    expect(new Set(installation.witness.saw(`alive-${gate}`).map((item) => item.marker))).toEqual(new Set([first.marker]));
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect(await filesAt(repository, delivered.commit)).toEqual({ ...FILES, 'add.js': expect.stringContaining('a + b') });
    await waitGone(work);
  }

  it('is lost with its shim, keeps what was written before, leaves nothing running, and is tried again', async () => {
    const work = await startWork();
    const checkpoint = await until('a checkpoint at the server', async () =>
      (await installation.events(work.id))
        .flatMap((event) => (event.kind === 'turn.event' && event.body.kind === 'checkpoint' ? [event.body.tree] : []))
        .at(-1),
    );
    const logBefore = (await readFile(join(work.first.folder, 'log'))).toString();
    const eventsBefore = (await readFile(join(work.first.folder, 'events.jsonl'), 'utf8')).trim().split('\n').length;
    sendSignal(work.shim, 'SIGKILL');
    await waitGone(work);
    await expectSecondDelivers(work, 'shim_died');
    expect((await installation.log(work.id, 1)).toString()).toContain(logBefore);
    expect(logBefore).toContain('before the fault');
    const stored = (await installation.events(work.id)).filter((event) => event.kind === 'turn.event' && event.attempt === 1);
    expect(stored.length).toBeGreaterThanOrEqual(eventsBefore);
    const blobs = await readdir(join(installation.home, 'server/blobs'), { recursive: true });
    expect(blobs.some((path) => path.endsWith(checkpoint.blobDigest))).toBe(true);
  });

  it('is killed by the node agent when its shim stands still past the lease', async () => {
    const work = await startWork();
    sendSignal(work.shim, 'SIGSTOP');
    await expectSecondDelivers(work, /lease_lost|node_lost/);
    expect(isRunning(work.shim)).toBe(false);
  });

  it('is lost when node agent and shim are killed together', async () => {
    const work = await startWork();
    await installation.node.end('SIGKILL');
    sendSignal(work.shim, 'SIGKILL');
    installation.node.start();
    await installation.ready();
    await expectSecondDelivers(work, 'shim_died');
  });

  it('stops by itself when nobody renews its lease', async () => {
    const work = await startWork();
    await Promise.all([installation.node.end('SIGKILL'), installation.server.end('SIGKILL')]);
    await until('the end of the shim', () => !isRunning(work.shim), LEASE.ttlMs + 10_000);
    await waitGone(work);
    const outcome: unknown = JSON.parse(await readFile(join(work.first.folder, 'outcome.json'), 'utf8'));
    expect(outcome).toMatchObject({ outcome: { kind: 'lost', reason: 'lease_lost' }, tree: { files: expect.any(Number) } });
    installation.server.start();
    installation.node.start();
    await installation.ready();
    await expectSecondDelivers(work, /lease_lost|node_lost/);
  });

  it('keeps its tree and is tried again when the guest agent is killed', async () => {
    const work = await startWork();
    const guest = descendants(work.shim).find(({ command }) => command.includes('guest-agent.cjs') && !command.includes('bwrap'));
    expect(guest).toBeDefined();
    sendSignal(guest?.pid ?? 0, 'SIGKILL');
    await expectSecondDelivers(work, 'guest_lost');
    const collected = (await installation.events(work.id)).filter(
      (event) => event.kind === 'turn.event' && event.attempt === 1 && event.body.kind === 'collected',
    );
    expect(collected).toHaveLength(1);
  });
});
