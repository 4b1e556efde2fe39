export {
  AGENT_DIR_VARIABLE,
  commandHarness,
  FEEDBACK_FILE_VARIABLE,
  ROUND_VARIABLE,
  TASK_FILE_VARIABLE,
} from './command-harness.ts';
export { type DetectedSetup, detectSetup, type SetupStep } from './detect-setup.ts';
export { harnessOf } from './find-harness.ts';
export type { AgentFile, FileToPut, Harness, HarnessPaths, RoundInput, RoundPlan } from './harness.ts';
export { type AgentInjection, type InjectionFacts, planAgentInjection } from './plan-agent-injection.ts';
