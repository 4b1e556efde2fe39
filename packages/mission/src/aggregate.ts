import type { Outcome } from './outcome-table.ts';

export type MissionState = 'draft' | 'running' | 'completed' | 'failed' | 'cancelled';
export type PhaseState = 'pending' | 'running' | 'completed' | 'failed' | 'skipped';
export type RunState = 'running' | 'completed' | 'failed';
export type TurnState = 'waiting' | 'running' | 'ended';
export type AttemptState = 'reserved' | 'accepted' | 'ended';

/** What a tree needs to be delivered or handed on: its content id and the blob that holds it. */
export interface TreeRef {
  readonly snapshotId: string;
  readonly blobDigest: string;
}

/** One try at a turn. (`epoch`, `attempt`) is the fencing token. */
export interface Attempt {
  readonly attempt: number;
  readonly epoch: number;
  readonly nodeId: string;
  readonly state: AttemptState;
  readonly outcome: Outcome | null;
  readonly detail: string;
  readonly tree: TreeRef | null;
  /** Whether the tree is the one that the host's check passed on, or no check was wanted. */
  readonly verified: boolean;
}

/** One agent session. `attempt` is the number of the newest attempt, 0 before the first. */
export interface Turn {
  readonly id: string;
  readonly phaseId: string;
  readonly runId: string;
  readonly step: number;
  /** Node of the topology that this turn carries out. */
  readonly graphNode: string;
  readonly state: TurnState;
  readonly attempt: number;
  /** Attempts made in the present pass; a retry starts at 0 while `attempt` goes on counting. */
  readonly tries: number;
  readonly attempts: readonly Attempt[];
}

/** One pass over a phase. */
export interface Run {
  readonly id: string;
  readonly state: RunState;
  /** Where the topology stands, as its planner wrote it. */
  readonly checkpoint: unknown;
}

export interface Phase {
  readonly id: string;
  readonly position: number;
  readonly kind: string;
  readonly state: PhaseState;
  readonly iteration: number;
  readonly run: Run | null;
  readonly outcome: Outcome | null;
  readonly detail: string;
  /** `wanted` from the end of the run until the result is delivered or found to be undeliverable. */
  readonly delivery: 'none' | 'wanted' | 'done';
  /** The result could not be made into a commit: a phase that is otherwise green fails. */
  readonly deliveryFailed: boolean;
  /** The turn and attempt whose tree is delivered. */
  readonly result: { readonly turnId: string; readonly attempt: number } | null;
}

/** A mission with everything that decides its next step. Phases are in order of position. */
export interface MissionAggregate {
  readonly id: string;
  readonly state: MissionState;
  readonly cancelRequested: boolean;
  /** Why it is cancelled, where that is not a caller's wish. */
  readonly cancelDetail?: string;
  readonly phases: readonly Phase[];
  /** Turns of all runs, oldest first. */
  readonly turns: readonly Turn[];
}

/** A turn that a topology wants now. */
export interface WantedTurn {
  readonly step: number;
  readonly graphNode: string;
}

/** The topology of a run as far as a mission needs it; carried out by the caller with the package for topologies. */
export interface RunPlanner {
  start(phase: Phase): { readonly checkpoint: unknown; readonly turns: readonly WantedTurn[] };
  advance(
    checkpoint: unknown,
    turn: { readonly graphNode: string; readonly step: number },
  ): { readonly checkpoint: unknown; readonly turns: readonly WantedTurn[]; readonly done: boolean };
}
