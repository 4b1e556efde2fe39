import { type PlannedPhase, parsePhase } from './parse-phase.ts';
import type { PhaseKind } from './phase-config.ts';
import { isObject, type PlanReason, type PlanRefusal, type PlanRefused, quote, refuseAll } from './plan-reasons.ts';

/** Most phases that a model may propose: each costs a full run, and the next one knows only the tree and what it is told. */
export const MAX_PLAN_PHASES = 4;
/** Kinds that a model may propose. */
export const PLANNABLE_KINDS = ['research', 'coding', 'benchmark', 'security_scan'] as const satisfies readonly PhaseKind[];

/** Phases in order, as they are applied once a person approved them. */
export interface Plan {
  readonly phases: readonly PlannedPhase[];
}

/**
 * Validates a plan (an untrusted document `{ "phases": [...] }`) when it is proposed and again when it is approved. Unknown kinds and keys,
 * and keys that nothing reads, are refused by name; nothing is repaired, and all refusals are told at once.
 */
export function validatePlan(document: unknown): { readonly verdict: 'valid'; readonly plan: Plan } | PlanRefused<PlanReason> {
  if (!isObject(document)) return malformed('the plan is no object');
  const extra = Object.keys(document).find((key) => key !== 'phases');
  if (extra !== undefined) return malformed(`the plan has the unknown key ${quote(extra)}`);
  if (!Array.isArray(document.phases)) return malformed('the plan has no list of phases');
  const list: readonly unknown[] = document.phases;
  return parsePhases(list, { kinds: PLANNABLE_KINDS, maxPhases: MAX_PLAN_PHASES });
}

/** Parses a list of phases within the given kinds and number. */
export function parsePhases(
  list: readonly unknown[],
  bounds: { readonly kinds: readonly PhaseKind[]; readonly maxPhases: number },
): { readonly verdict: 'valid'; readonly plan: Plan } | PlanRefused<PlanReason> {
  const refusals: PlanRefusal<PlanReason>[] = [];
  if (list.length === 0) refusals.push({ reason: 'plan_empty', message: 'the plan has no phases' });
  if (list.length > bounds.maxPhases)
    refusals.push({ reason: 'plan_too_many_phases', message: `the plan has ${list.length} phases; the limit is ${bounds.maxPhases}` });
  const phases: PlannedPhase[] = [];
  for (const [at, item] of list.slice(0, bounds.maxPhases).entries()) {
    const phase = parsePhase(item, at, bounds.kinds);
    if (isPhase(phase)) phases.push(phase);
    else refusals.push(...phase);
  }
  const [first, ...others] = refusals;
  return first === undefined ? { verdict: 'valid', plan: { phases } } : refuseAll(first, others);
}

function isPhase(parsed: PlannedPhase | readonly PlanRefusal<PlanReason>[]): parsed is PlannedPhase {
  return !Array.isArray(parsed);
}

function malformed(message: string): PlanRefused<PlanReason> {
  return refuseAll({ reason: 'plan_malformed', message }, []);
}
