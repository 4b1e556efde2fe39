export type {
  Attempt,
  AttemptState,
  MissionAggregate,
  MissionState,
  Phase,
  PhaseState,
  Run,
  RunPlanner,
  RunState,
  TreeRef,
  Turn,
  TurnState,
  WantedTurn,
} from './aggregate.ts';
export {
  describeOutcome,
  EXIT_CODE,
  type FailedToStartReason,
  type LostReason,
  MAX_TURN_ATTEMPTS,
  type Outcome,
  type OutcomeRule,
  type RefusedReason,
  ruleOf,
} from './outcome-table.ts';
export type { Dispatch, MissionStore, StoreResult } from './ports.ts';
export type { RefusalCode } from './reasons.ts';
export {
  type AttemptAction,
  type AttemptAnswer,
  type AttemptMachine,
  type AttemptPlan,
  answerAction,
  type Interrupt,
  interruptAttempt,
  type Purpose,
  startAttempt,
} from './step-attempt.ts';
export { type MissionFact, type MissionInput, type StepContext, type StepResult, stepMission } from './step-mission.ts';
export { type MissionAction, wantedActions } from './wanted-actions.ts';
