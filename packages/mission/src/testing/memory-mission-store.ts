import type { MissionAggregate } from '../aggregate.ts';
import type { MissionStore, StoreResult } from '../ports.ts';
import { type MissionInput, type StepContext, stepMission } from '../step-mission.ts';

/** A store in memory: one change of a mission after the other, as the port demands. */
export class MemoryMissionStore implements MissionStore {
  readonly #missions = new Map<string, { mission: MissionAggregate; nextSeq: number }>();
  readonly #context: StepContext;

  constructor(context: StepContext) {
    this.#context = context;
  }

  /** Adds a mission as it is. */
  add(mission: MissionAggregate): void {
    this.#missions.set(mission.id, { mission, nextSeq: 1 });
  }

  async apply(missionId: string, input: MissionInput): Promise<StoreResult> {
    const held = this.#missions.get(missionId);
    if (held === undefined) return { ok: false, code: 'mission_not_found' };
    const step = stepMission(held.mission, input, this.#context);
    if (!step.ok) return step;
    const firstSeq = held.nextSeq;
    this.#missions.set(missionId, { mission: step.mission, nextSeq: firstSeq + step.facts.length });
    return { ok: true, mission: step.mission, facts: step.facts, firstSeq };
  }

  async load(missionId: string): Promise<MissionAggregate | undefined> {
    return this.#missions.get(missionId)?.mission;
  }
}
