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
  type CauseFacts,
  type CommandReport,
  decideCause,
  type Exhaustion,
  FULL_DISK_ROOM_BYTES,
  findShortages,
  judgeExhaustion,
} from './decide-cause.ts';
export { expandRecipe, findRecipe, listRecipes } from './expand-recipe.ts';
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
export type { PlannedPhase } from './parse-phase.ts';
export { MAX_RECIPE_PHASES, MAX_RECIPE_TEXT, parseRecipe, type Recipe, type RecipeInput, type RecipePhase } from './parse-recipe.ts';
export {
  livePhaseKeys,
  lookUpPhaseKey,
  MAX_COMMAND_CHARS,
  MAX_TASK_CHARS,
  PHASE_KINDS,
  type PhaseConfig,
  type PhaseConfigKey,
  type PhaseKind,
  phaseConfigKeys,
  type Reader,
  type ValueRule,
} from './phase-config.ts';
export { PLAN_REASONS, type PlanReason, type PlanRefusal, type PlanRefused, RECIPE_REASONS, type RecipeReason } from './plan-reasons.ts';
export type { Dispatch, MissionStore, StoreResult } from './ports.ts';
export { preferNode } from './prefer-node.ts';
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
export { MAX_PLAN_PHASES, PLANNABLE_KINDS, type Plan, validatePlan } from './validate-plan.ts';
export { type MissionAction, wantedActions } from './wanted-actions.ts';
