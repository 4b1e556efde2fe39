import type { MissionAggregate } from '../aggregate.ts';
import type { MissionStore, StoreResult } from '../ports.ts';
import type { MissionInput } from '../step-mission.ts';

/** A store under test with one draft mission of two phases, and the id of a node it knows. */
export interface MissionStoreFixture {
  readonly store: MissionStore;
  readonly missionId: string;
  readonly nodeId: string;
  /** An id of the same form that no mission has. */
  readonly unknownMissionId: string;
}

/** One promise of the port; `run` rejects when a store breaks it. */
export interface MissionStoreCase {
  readonly name: string;
  run(fixture: MissionStoreFixture): Promise<void>;
}

const TREE = { snapshotId: 'a'.repeat(64), blobDigest: 'b'.repeat(64) };
const RACERS = 8;

function demand(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`the store breaks its promise: ${what}`);
}

async function applied(store: MissionStore, missionId: string, input: MissionInput): Promise<Extract<StoreResult, { ok: true }>> {
  const result = await store.apply(missionId, input);
  demand(result.ok, `${input.type} is applied`);
  return result;
}

const same = (a: unknown, b: unknown) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

/** The order of an object's keys is no promise of a store. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, item]): [string, unknown] => [key, sorted(item)])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function waitingTurn(mission: MissionAggregate): string {
  const turn = mission.turns.find((item) => item.state === 'waiting');
  demand(turn !== undefined, 'a turn waits');
  return turn.id;
}

/** What every store of missions must keep, run on a fresh fixture each. */
export const missionStoreCases: readonly MissionStoreCase[] = [
  {
    name: 'gives back what the last step made',
    run: async ({ store, missionId, nodeId }) => {
      const launched = await applied(store, missionId, { type: 'launch' });
      demand(same(await store.load(missionId), launched.mission), 'the launched mission is loaded as it was returned');
      const turnId = waitingTurn(launched.mission);
      const reserved = await applied(store, missionId, { type: 'attempt_reserved', turnId, epoch: 1, nodeId, node: 'local' });
      await applied(store, missionId, { type: 'attempt_accepted', turnId, attempt: 1, epoch: 1 });
      const end = { outcome: { kind: 'gate_capped' }, detail: 'x', tree: TREE, verified: false } as const;
      const ended = await applied(store, missionId, { type: 'attempt_ended', turnId, attempt: 1, epoch: 1, ...end });
      demand(reserved.mission.turns[0]?.attempt === 1, 'the attempt is numbered');
      demand(same(await store.load(missionId), ended.mission), 'the ended attempt is loaded with its outcome and tree');
    },
  },
  {
    name: 'numbers facts without gaps',
    run: async ({ store, missionId }) => {
      const launched = await applied(store, missionId, { type: 'launch' });
      const cancelled = await applied(store, missionId, { type: 'cancel' });
      demand(cancelled.firstSeq === launched.firstSeq + launched.facts.length, 'the next fact follows the last one');
    },
  },
  {
    name: 'changes nothing when an event is refused',
    run: async ({ store, missionId }) => {
      await applied(store, missionId, { type: 'launch' });
      const before = await store.load(missionId);
      const refused = await store.apply(missionId, { type: 'launch' });
      demand(!refused.ok && refused.code === 'mission_not_draft', 'a second launch is refused');
      demand(same(await store.load(missionId), before), 'the mission is as it was');
    },
  },
  {
    name: 'tells a mission that it does not know from one that refuses',
    run: async ({ store, unknownMissionId }) => {
      const result = await store.apply(unknownMissionId, { type: 'launch' });
      demand(!result.ok && result.code === 'mission_not_found', 'an unknown mission is not found');
      demand((await store.load(unknownMissionId)) === undefined, 'an unknown mission is not loaded');
    },
  },
  {
    name: 'lets one of many at the same moment reserve a turn',
    run: async ({ store, missionId, nodeId }) => {
      const launched = await applied(store, missionId, { type: 'launch' });
      const turnId = waitingTurn(launched.mission);
      const input = { type: 'attempt_reserved', turnId, epoch: 1, nodeId, node: 'local' } as const;
      const results = await Promise.all(Array.from({ length: RACERS }, () => store.apply(missionId, input)));
      demand(results.filter((result) => result.ok).length === 1, 'exactly one reservation is applied');
      demand((await store.load(missionId))?.turns[0]?.attempts.length === 1, 'there is one attempt');
    },
  },
];
