import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MissionAggregate, type MissionInput, type Outcome, type Phase, stepMission, wantedActions } from '../src/index.ts';
import { contextWithIds, draftMission, solo } from './solo-planner.ts';

const TREE = { snapshotId: 'a'.repeat(64), blobDigest: 'b'.repeat(64) };

/** Applies events, failing the test on a refusal. */
function run(mission: MissionAggregate, inputs: readonly ((now: MissionAggregate) => MissionInput)[]) {
  const context = contextWithIds();
  let now = mission;
  const facts: string[] = [];
  for (const make of inputs) {
    const result = stepMission(now, make(now), context);
    if (!result.ok) throw new Error(`refused: ${result.code}`);
    now = result.mission;
    facts.push(...result.facts.map((fact) => fact.kind));
  }
  return { mission: now, facts };
}

const launch = (): MissionInput => ({ type: 'launch' });
const reserve = (now: MissionAggregate): MissionInput => {
  const turn = now.turns.find((item) => item.state === 'waiting');
  return { type: 'attempt_reserved', turnId: turn?.id ?? 'none', epoch: 1, nodeId: 'nod', node: 'local' };
};
const end =
  (outcome: Outcome, tree: typeof TREE | null = TREE, verified = outcome.kind === 'completed') =>
  (now: MissionAggregate): MissionInput => {
    const turn = now.turns.find((item) => item.state === 'running');
    return {
      type: 'attempt_ended',
      turnId: turn?.id ?? 'none',
      attempt: turn?.attempt ?? 0,
      epoch: 1,
      outcome,
      detail: '',
      tree,
      verified,
    };
  };
const delivered =
  (ok = true) =>
  (now: MissionAggregate): MissionInput => {
    const phase = now.phases.find((item) => item.delivery === 'wanted');
    return { type: 'delivery_recorded', phaseId: phase?.id ?? 'none', ok, detail: ok ? '' : 'no import' };
  };
const states = (mission: MissionAggregate) => mission.phases.map((phase) => phase.state);

describe('a mission', () => {
  it('runs its phases in order and completes when the last result is delivered', () => {
    const { mission, facts } = run(draftMission(2), [
      launch,
      reserve,
      end({ kind: 'completed' }),
      delivered(),
      reserve,
      end({ kind: 'completed' }),
      delivered(),
    ]);
    expect(mission.state).toBe('completed');
    expect(states(mission)).toEqual(['completed', 'completed']);
    expect(facts).toEqual([
      'mission.started',
      'phase.started',
      'turn.placed',
      'turn.ended',
      'phase.completed',
      'phase.started',
      'turn.placed',
      'turn.ended',
      'phase.completed',
      'mission.closed',
    ]);
  });

  it('asks for a delivery before a phase closes, verified only when the check passed on that tree', () => {
    const { mission } = run(draftMission(1), [launch, reserve, end({ kind: 'completed' })]);
    expect(states(mission)).toEqual(['running']);
    expect(wantedActions(mission)).toEqual([{ type: 'deliver', phaseId: 'p0', turnId: 'turn-2', attempt: 1, verified: true }]);
  });

  it('delivers the tree of a failed turn as unverified work, and then fails', () => {
    const after = run(draftMission(1), [launch, reserve, end({ kind: 'gate_capped' })]);
    expect(wantedActions(after.mission)).toEqual([{ type: 'deliver', phaseId: 'p0', turnId: 'turn-2', attempt: 1, verified: false }]);
    const { mission } = run(draftMission(1), [launch, reserve, end({ kind: 'gate_capped' }), delivered()]);
    expect(mission.state).toBe('failed');
  });

  it('fails a green phase whose result could not be made into a commit', () => {
    const { mission } = run(draftMission(1), [launch, reserve, end({ kind: 'completed' }), delivered(false)]);
    expect([mission.state, ...states(mission)]).toEqual(['failed', 'failed']);
  });

  it('tries a lost attempt once more under the next number, and gives up after the second', () => {
    const lost = end({ kind: 'lost', reason: 'shim_died' }, null);
    const once = run(draftMission(1), [launch, reserve, lost, reserve]);
    expect(once.mission.turns[0]?.attempt).toBe(2);
    const twice = run(draftMission(1), [launch, reserve, lost, reserve, lost]);
    expect(twice.mission.state).toBe('failed');
  });

  it('keeps what a lost attempt captured when no later attempt brings a tree', () => {
    const { mission } = run(draftMission(1), [
      launch,
      reserve,
      end({ kind: 'lost', reason: 'shim_died' }, TREE, false),
      reserve,
      end({ kind: 'lost', reason: 'node_lost' }, null),
    ]);
    expect(wantedActions(mission)).toEqual([{ type: 'deliver', phaseId: 'p0', turnId: 'turn-2', attempt: 1, verified: false }]);
  });

  it.each<[string, Outcome, string]>([
    ['was called off', { kind: 'cancelled' }, 'seat_revoked: why'],
    ['was lost meanwhile', { kind: 'lost', reason: 'node_lost' }, 'seat_revoked: why; no word'],
    ['failed by itself', { kind: 'gate_capped' }, 'no word'],
  ])('that is cancelled for a reason tells it with an attempt that %s, which is not tried again', (_what, outcome, detail) => {
    const because = (): MissionInput => ({ type: 'cancel', detail: 'seat_revoked: why' });
    const said = outcome.kind === 'cancelled' ? '' : 'no word';
    const ended = (now: MissionAggregate): MissionInput => ({ ...end(outcome, null)(now), detail: said }) as MissionInput;
    const { mission } = run(draftMission(2), [launch, reserve, because, ended]);
    expect(mission.turns[0]?.attempts.map((attempt) => attempt.detail)).toEqual([detail]);
    expect([mission.state, ...states(mission)]).toEqual(['cancelled', 'failed', 'skipped']);
    expect(mission.phases[0]?.detail).toBe(detail);
  });

  it('that is cancelled for a reason before it is placed says so, and one that was being cancelled takes the reason', () => {
    const because = (): MissionInput => ({ type: 'cancel', detail: 'seat_revoked: why' });
    expect(run(draftMission(1), [launch, because]).mission.phases[0]?.detail).toBe('seat_revoked: why');
    const twice = run(draftMission(1), [launch, reserve, () => ({ type: 'cancel' }), because, end({ kind: 'cancelled' }, null)]);
    expect(twice.mission.phases[0]?.detail).toBe('seat_revoked: why');
  });

  it('skips the phases behind a failed one, and a retry reopens them', () => {
    const failed = [launch, reserve, end({ kind: 'setup_failed' }, null)];
    const first = run(draftMission(3), failed);
    expect(states(first.mission)).toEqual(['failed', 'skipped', 'skipped']);
    expect(first.mission.state).toBe('failed');
    const again = run(draftMission(3), [...failed, () => ({ type: 'retry' })]);
    expect(states(again.mission)).toEqual(['running', 'pending', 'pending']);
    expect(again.mission.phases[0]?.iteration).toBe(2);
    expect(again.mission.turns.filter((turn) => turn.state === 'waiting')).toHaveLength(1);
  });

  it('is cancelled at once where nothing runs, and after the attempt where one does', () => {
    const waiting = run(draftMission(2), [launch, () => ({ type: 'cancel' })]);
    expect([waiting.mission.state, ...states(waiting.mission)]).toEqual(['cancelled', 'failed', 'skipped']);
    const running = run(draftMission(2), [launch, reserve, () => ({ type: 'cancel' })]);
    expect(running.mission.state).toBe('running');
    expect(wantedActions(running.mission)).toEqual([{ type: 'cancel_attempt', turnId: 'turn-2', attempt: 1, epoch: 1, nodeId: 'nod' }]);
    const ended = run(draftMission(2), [launch, reserve, () => ({ type: 'cancel' }), end({ kind: 'cancelled' }), delivered()]);
    expect(ended.mission.state).toBe('cancelled');
  });

  it('does not try again after a cancel, whose attempt may end as lost', () => {
    const { mission } = run(draftMission(1), [
      launch,
      reserve,
      () => ({ type: 'cancel' }),
      end({ kind: 'lost', reason: 'node_lost' }, null),
    ]);
    expect(mission.state).toBe('cancelled');
  });

  it('fails when it can never be placed', () => {
    const { mission } = run(draftMission(1), [
      launch,
      (now) => ({
        type: 'placement_refused',
        turnId: now.turns[0]?.id ?? '',
        outcome: { kind: 'failed_to_start', reason: 'never_fits' },
        detail: 'too big',
      }),
    ]);
    expect(mission.state).toBe('failed');
  });
});

describe('events that are refused', () => {
  const context = contextWithIds();
  const running = run(draftMission(1), [launch, reserve]).mission;
  const completed = run(draftMission(1), [launch, reserve, end({ kind: 'completed' }), delivered()]).mission;
  const turnId = running.turns[0]?.id ?? '';
  const ended = {
    type: 'attempt_ended',
    turnId,
    attempt: 1,
    epoch: 1,
    outcome: { kind: 'completed' },
    detail: '',
    tree: TREE,
    verified: true,
  } as const;

  it.each<[string, MissionAggregate, MissionInput, string]>([
    ['a second launch', running, { type: 'launch' }, 'mission_not_draft'],
    ['a launch without phases', draftMission(0), { type: 'launch' }, 'mission_without_phases'],
    [
      'a reservation of a running turn',
      running,
      { type: 'attempt_reserved', turnId, epoch: 1, nodeId: 'n', node: 'n' },
      'turn_not_waiting',
    ],
    ['a message of an older attempt', running, { ...ended, attempt: 0 }, 'attempt_stale'],
    ['a message of an older epoch', running, { ...ended, epoch: 0 }, 'attempt_stale'],
    ['a second end of one attempt', completed, { ...ended }, 'attempt_ended'],
    ['an unknown turn', running, { ...ended, turnId: 'x' }, 'turn_not_found'],
    ['a cancel after the end', completed, { type: 'cancel' }, 'mission_ended'],
    ['a retry of a completed mission', completed, { type: 'retry' }, 'mission_not_running'],
    ['a retry of an unknown phase', running, { type: 'retry', phaseId: 'nope' }, 'phase_not_found'],
    ['a retry of a running phase', running, { type: 'retry', phaseId: 'p0' }, 'phase_not_retryable'],
    [
      'a delivery that nobody waits for',
      running,
      { type: 'delivery_recorded', phaseId: 'p0', ok: true, detail: '' },
      'delivery_not_wanted',
    ],
  ])('%s', (_name, mission, input, code) => {
    expect(stepMission(mission, input, context)).toEqual({ ok: false, code });
  });
});

describe('any sequence of events', () => {
  const outcome = fc.constantFrom<Outcome>(
    { kind: 'completed' },
    { kind: 'lost', reason: 'node_lost' },
    { kind: 'gate_capped' },
    { kind: 'cancelled' },
    { kind: 'timed_out' },
  );
  const step = fc.oneof(
    fc.constant(reserve),
    fc.constant(launch),
    fc.record({ outcome, tree: fc.boolean() }).map(({ outcome: value, tree }) => end(value, tree ? TREE : null)),
    fc.boolean().map((ok) => delivered(ok)),
    fc.constant((): MissionInput => ({ type: 'cancel' })),
    fc.constant((): MissionInput => ({ type: 'retry' })),
  );

  it('never leaves a running mission with nothing to do, runs one phase at a time and never reuses an attempt number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 40 }), (count, steps) => {
        const context = contextWithIds();
        let now = draftMission(count);
        for (const make of steps) {
          const result = stepMission(now, make(now), context);
          if (result.ok) now = result.mission;
          expect(now.phases.filter((phase) => phase.state === 'running').length).toBeLessThanOrEqual(1);
          for (const turn of now.turns)
            expect(turn.attempts.map((attempt) => attempt.attempt)).toEqual(turn.attempts.map((_, index) => index + 1));
          if (now.state === 'running') {
            const busy = now.turns.some((turn) => turn.state === 'running');
            expect(busy || wantedActions(now).length > 0).toBe(true);
          }
          if (now.state === 'completed') expect(now.phases.every((phase: Phase) => phase.state === 'completed')).toBe(true);
        }
      }),
    );
  });
});

describe('a run of several turns', () => {
  it('makes the next turn when one succeeds, and ends the run after the last', () => {
    const context = contextWithIds(solo(2));
    const mission = draftMission(1);
    const launched = stepMission(mission, { type: 'launch' }, context);
    if (!launched.ok) throw new Error(launched.code);
    const reserved = stepMission(launched.mission, reserve(launched.mission), context);
    if (!reserved.ok) throw new Error(reserved.code);
    const next = stepMission(reserved.mission, end({ kind: 'completed' })(reserved.mission), context);
    if (!next.ok) throw new Error(next.code);
    expect(next.mission.turns.map((turn) => [turn.step, turn.state])).toEqual([
      [0, 'ended'],
      [1, 'waiting'],
    ]);
    expect(next.mission.phases[0]?.delivery).toBe('none');
  });
});
