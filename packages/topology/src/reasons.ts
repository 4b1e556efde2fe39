/** Why a graph or checkpoint is refused; closed. */
export const TOPOLOGY_REASONS = [
  'not_an_object',
  'unknown_key',
  'unknown_kind',
  'member_count',
  'round_count',
  'no_nodes',
  'too_many_nodes',
  'bad_node_id',
  'duplicate_node',
  'blank_role',
  'bad_field',
  'dangling_edge',
  'self_edge',
  'duplicate_edge',
  'inert_edge',
  'cycle',
  'unreachable_node',
  'unknown_version',
  'steps_out_of_order',
] as const;
/** One member of {@link TOPOLOGY_REASONS}. */
export type TopologyReason = (typeof TOPOLOGY_REASONS)[number];

/** Why a roster is refused; closed, in the order they are looked for. */
export const ROSTER_REASONS = [
  'roster_malformed',
  'roster_empty',
  'roster_too_many_members',
  'roster_unknown_topology',
  'roster_blank_role',
  'roster_unknown_backend',
  'roster_unbuildable',
] as const;
/** One member of {@link ROSTER_REASONS}. */
export type RosterReason = (typeof ROSTER_REASONS)[number];

/** A refusal with its machine-readable reason and one sentence for people. */
export interface Refusal<Reason> {
  readonly verdict: 'refused';
  readonly reason: Reason;
  readonly message: string;
}

export function refuse<Reason>(reason: Reason, message: string): Refusal<Reason> {
  return { verdict: 'refused', reason, message };
}

/** Code of {@link TopologyError}. */
export type TopologyErrorCode = 'topology_invalid' | 'parallel_invalid';

/** A broken contract of the caller; expected outcomes are return values. */
export class TopologyError extends Error {
  readonly code: TopologyErrorCode;

  constructor(code: TopologyErrorCode, message: string) {
    super(message);
    this.name = 'TopologyError';
    this.code = code;
  }
}
