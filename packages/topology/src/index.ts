export { buildTopology, type Member, soloTopology } from './build-topology.ts';
export {
  EDGE_TIMES,
  type EdgeTime,
  findKind,
  type KindEntry,
  type Shape,
  TOPOLOGY_KINDS,
  type TopologyKind,
  topologyKinds,
} from './catalogue.ts';
export { composeTask } from './compose-task.ts';
export { type Applied, applyTurnResult, type DueTurn, type Execution, nextTurns, type StepRecord, startExecution } from './execution.ts';
export {
  CHECKPOINT_VERSION,
  MAX_MEMBERS,
  MAX_NAME_LENGTH,
  MAX_PARALLEL,
  MAX_RATIONALE_LENGTH,
  MAX_REPORT_LENGTH,
  MAX_ROLE_LENGTH,
  MAX_ROUNDS,
  MAX_STEPS,
} from './limits.ts';
export { parseCheckpoint } from './parse-checkpoint.ts';
export { planSteps, planWaves, requiredBackends, type Step } from './plan-steps.ts';
export {
  type Refusal,
  ROSTER_REASONS,
  type RosterReason,
  TOPOLOGY_REASONS,
  TopologyError,
  type TopologyErrorCode,
  type TopologyReason,
} from './reasons.ts';
export { renderDot, renderMermaid } from './render-topology.ts';
export { type Roster, type RosterMember, type RosterRefusal, validateRoster } from './validate-roster.ts';
export { type Topology, type TopologyEdge, type TopologyNode, validateTopology } from './validate-topology.ts';
