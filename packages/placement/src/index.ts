export {
  type BaselineFacts,
  baselineOf,
  type Charge,
  type Committed,
  chargeNode,
  neverFits,
  rememberBaseline,
  slotsOf,
  sumCommitments,
} from './charge-node.ts';
export {
  choosePlacement,
  type Placement,
  type PlacementRequest,
  type Preference,
  renderSurvey,
  type Survey,
  surveyNodes,
} from './choose-placement.ts';
export {
  type AttemptEnd,
  type BudgetAmount,
  type BudgetCap,
  type BudgetGrant,
  type BudgetUse,
  chargeAttempt,
  grantBudget,
  holdGrant,
  MIN_GRANT,
  type SeatBudget,
} from './grant-budget.ts';
export { type FitNode, judgeNode, type NodeVerdict, type PlacementNeed, type UnfitNode } from './judge-node.ts';
export { judgeSeat, type SeatBusy, type SeatFree, type SeatRoom } from './judge-seat.ts';
export {
  BASELINE_SETTLE_MS,
  DISK_PER_PROCESS_MIB,
  DISK_PER_VM_MIB,
  DISK_RESERVE_MIB,
  HOST_BASELINE_FLOOR_MIB,
  HOST_RESERVE_MIB,
  LONGEST_WAIT_MS,
  MAX_HEALTH_AGE_MS,
  MAX_METRICS_AGE_MS,
  MEM_PER_PROCESS_MIB,
  MEM_PER_VM_MIB,
  PROCESS_BASELINE_FLOOR_MIB,
  PROCESS_DISK_RESERVE_MIB,
  PROCESS_RESERVE_MIB,
  VCPUS_PER_PROCESS,
  VCPUS_PER_VM,
  VM_OVERHEAD_MIB,
} from './limits.ts';
export type { Commitment, HealthReading, LiveVms, MetricsReading, NodeRecord } from './node-record.ts';
export { type BatchPlacement, type BatchRequest, type BatchTurn, planBatch } from './plan-batch.ts';
export {
  PLACEMENT_ERROR_CODES,
  PlacementError,
  type PlacementErrorCode,
  UNFIT_REASONS,
  type UnfitCause,
  type UnfitReason,
} from './reasons.ts';
export { backendKey, DEFAULT_BACKEND, requiredBackends } from './require-backends.ts';
export { reserveHost } from './reserve-host.ts';
export {
  type Claim,
  DEFAULT_SIZINGS,
  type Demand,
  DRIVERS,
  type Driver,
  type HostReserve,
  meetsFloor,
  PROCESS_SIZING,
  resolveDemand,
  type Sizing,
  type Sizings,
  sizeDemand,
  VM_SIZING,
} from './size-demand.ts';
export { type LiveVm, slotCommitments } from './slot-commitments.ts';
