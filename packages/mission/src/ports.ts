import type { MissionAggregate } from './aggregate.ts';
import type { RefusalCode } from './reasons.ts';
import type { MissionFact, MissionInput } from './step-mission.ts';
import type { MissionAction } from './wanted-actions.ts';

/** What a store answers to an applied event. */
export type StoreResult =
  | { readonly ok: true; readonly mission: MissionAggregate; readonly facts: readonly MissionFact[]; readonly firstSeq: number }
  | { readonly ok: false; readonly code: RefusalCode | 'mission_not_found' };

/**
 * Where missions live. `apply` locks the mission, steps it, and writes state, facts (with their sequence numbers)
 * and the wake-up of its driver in one transaction.
 */
export interface MissionStore {
  apply(missionId: string, input: MissionInput): Promise<StoreResult>;
  load(missionId: string): Promise<MissionAggregate | undefined>;
}

/** Carries out what a mission's state asks for. Every action may arrive more than once. */
export interface Dispatch {
  carryOut(missionId: string, action: MissionAction): Promise<void>;
}
