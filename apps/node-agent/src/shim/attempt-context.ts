import type { CommitChange, ManifestEntry } from '@firecrew/artifact-capture';
import type { Exhaustion } from '@firecrew/mission';
import type { CapturedTree, Isolation, RoundRecord, TurnSpec } from '@firecrew/protocol';
import type { BootArtifacts, LayerKey, LayerStore, OpenLayer } from '@firecrew/rootfs';
import type { CallerPath, Driver, Vm } from '@firecrew/vmm';
import type { TurnPaths } from '../turn-folder/turn-folder.ts';
import type { EgressGate } from './egress-gate.ts';
import type { EventSpool } from './event-spool.ts';
import type { BootClock, Lease } from './lease.ts';
import type { LogSpool } from './log-spool.ts';
import type { ModelGate } from './model-gate.ts';

/** A tree of a round with its file in `staged/`. */
export interface StagedTree {
  readonly file: string;
  readonly captured: CapturedTree;
  readonly entries: readonly ManifestEntry[];
}

/** What the attempt has come to so far; the steps write it, the result is made from it. */
export interface AttemptState {
  vm: Vm | null;
  /** The layer that the VM lies on, or the next one will. */
  layer: OpenLayer | null;
  /** Keys for which this attempt found that there is no layer; the empty one for a key that could not be made. */
  readonly noLayer: Set<LayerKey>;
  isolation: Isolation;
  /** Manifest of the phase's base. */
  base: readonly ManifestEntry[];
  /** The newest collected tree. */
  tree: StagedTree | null;
  /** Whether `tree` was taken while the agent worked. */
  checkpoint: boolean;
  /** What of the newest tree a commit would hold. */
  change: CommitChange;
  /** Snapshot that the check passed on. */
  checkedSnapshot: string | null;
  /** Whether the newest check was ended at its time limit. */
  checkTimedOut: boolean;
  feedback: string | null;
  checkInputsChanged: readonly string[];
  restoredPaths: readonly string[];
  /** What the newest agent, or what came after it, failed for. */
  exhausted: Shortage | null;
  /** Code of what kept a VM from coming up. */
  bootFault: string | null;
  /** Why a VM ended by itself. */
  vmEnd: string | null;
  readonly rounds: RoundRecord[];
}

/** What a command failed for, and the words for it. */
export interface Shortage {
  readonly reason: Exhaustion;
  readonly message: string;
}

/** Where layers of this node are, and what the VMs of the attempt are made of. */
export interface LayerPlace {
  readonly store: LayerStore;
  readonly artifacts: BootArtifacts;
}

/** Everything a step of an attempt works with. */
export interface AttemptContext {
  readonly spec: TurnSpec;
  readonly paths: TurnPaths;
  readonly driver: Driver;
  /** Or why there are none. */
  readonly layers: LayerPlace | string;
  readonly guestAgent: { readonly node: string; readonly bundle: string };
  /** Variables that may enter the guest although they look like secrets. */
  readonly contract: readonly string[];
  readonly caller: CallerPath;
  readonly caBundle: string | null;
  readonly events: EventSpool;
  readonly log: LogSpool;
  readonly gate: EgressGate;
  readonly model: ModelGate;
  readonly lease: Lease;
  readonly clock: BootClock;
  /** Boot time at which the attempt is over, in `ms`. */
  readonly deadlineMs: number;
  readonly state: AttemptState;
}

/** Value of `FIRECREW_ATTEMPT` in every process of an attempt. */
export function attemptMarker(key: { readonly turnId: string; readonly attempt: number; readonly epoch: number }): string {
  return `${key.turnId}.${key.attempt}.${key.epoch}`;
}

/** The record of a round, made when it is first written to. */
export function roundRecord(state: AttemptState, round: number): RoundRecord {
  const known = state.rounds.find((item) => item.round === round);
  if (known !== undefined) return known;
  const fresh: RoundRecord = { round, agent: null, changed: null, check: null, gate: null };
  state.rounds.push(fresh);
  return fresh;
}
