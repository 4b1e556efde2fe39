/*
 * Attempt (the shim's view): what one attempt does next. Round r of the agent, then its verification:
 *
 *   fetch -> boot(agent) -> inject -> [set up] -> agent -> collect -> destroy ┬-> boot(verify) -> inject -> [set up] -> check -> destroy ┐
 *                 ^                                                           │ no check to run                                        │
 *                 │                                                           v                                                        v
 *                 └───────────────── next round ────────────────────────── decide gate <───────────────────────────────────────────────┘
 *                                                                             └─ satisfied, capped, unrunnable ─> finish
 *
 * Where the set-up may be kept as a layer, each boot is preceded by `prepare_layer`, which finds or builds it in a VM of its own that it also
 * destroys. A VM that lies on a layer is set up already. Without one, for whatever reason, the set-up runs in the VM.
 *
 * Interrupts (deadline, cancel, lease lost, guest lost, log spool full, budget reached) leave any step: what is in an agent's VM is collected first,
 * then the VM is destroyed, then the attempt finishes with the interrupt's outcome. No way out skips the collection.
 *
 * One action is under way at a time. Each carries a number; an answer with another number belongs to an action that
 * was overtaken and changes nothing.
 */
import type { Outcome } from './outcome-table.ts';

export type Purpose = 'agent' | 'verify';

export type AttemptAction =
  | { readonly type: 'fetch' }
  | { readonly type: 'prepare_layer'; readonly purpose: Purpose; readonly round: number }
  | { readonly type: 'boot'; readonly purpose: Purpose; readonly round: number }
  | { readonly type: 'inject'; readonly purpose: Purpose; readonly round: number }
  | { readonly type: 'set_up'; readonly purpose: Purpose; readonly round: number }
  | { readonly type: 'run_agent'; readonly round: number }
  | { readonly type: 'collect'; readonly round: number; readonly rescue: boolean }
  | { readonly type: 'destroy'; readonly purpose: Purpose; readonly round: number }
  | { readonly type: 'check'; readonly round: number }
  | { readonly type: 'decide_gate'; readonly round: number }
  | { readonly type: 'finish'; readonly outcome: Outcome; readonly detail: string };

/**
 * How an action ended. `failed` carries what went wrong for a person. `checkDue` says of a collected tree whether the check is
 * worth running; it is where it is absent. `isSetUp` says of a booted VM that it lies on a layer of the set-up.
 */
export type AttemptAnswer =
  | { readonly type: 'done'; readonly checkDue?: boolean; readonly isSetUp?: boolean }
  | { readonly type: 'failed'; readonly detail: string; readonly outcome?: Outcome }
  | { readonly type: 'gate'; readonly verdict: 'satisfied' | 'next_round' | 'capped' | 'unrunnable'; readonly detail: string };

export type Interrupt =
  | { readonly type: 'deadline' }
  | { readonly type: 'cancel' }
  | { readonly type: 'lease_lost' }
  | { readonly type: 'guest_lost'; readonly detail: string }
  | { readonly type: 'spool_full' }
  | { readonly type: 'budget_exceeded'; readonly detail: string };

/** Whether a phase has parts that some missions do not have. */
export interface AttemptPlan {
  readonly hasSetup: boolean;
  /** Whether the set-up may be kept as a layer; default false. */
  readonly wantsLayer?: boolean;
  readonly hasCheck: boolean;
}

export interface AttemptMachine {
  readonly plan: AttemptPlan;
  readonly round: number;
  /** Number of the action under way. */
  readonly sequence: number;
  readonly action: AttemptAction;
  /** Set once the attempt is on its way out: what it will finish with. */
  readonly ending: { readonly outcome: Outcome; readonly detail: string } | null;
  /** The VM that may be up now. */
  readonly vm: Purpose | null;
  /** Whether that VM lies on a layer of the set-up. */
  readonly isSetUp: boolean;
  /** Whether the tree of this round is to be checked. */
  readonly checkDue: boolean;
  /** Whether the agent's VM holds work of this round that was not collected yet. */
  readonly uncollected: boolean;
}

/** A new attempt; its first action is to fetch the workspace. */
export function startAttempt(plan: AttemptPlan): AttemptMachine {
  return {
    plan,
    round: 1,
    sequence: 1,
    action: { type: 'fetch' },
    ending: null,
    vm: null,
    isSetUp: false,
    checkDue: true,
    uncollected: false,
  };
}

/** Applies the answer to action number `sequence`. A stale answer, and any after `finish`, changes nothing. */
export function answerAction(machine: AttemptMachine, sequence: number, answer: AttemptAnswer): AttemptMachine {
  if (sequence !== machine.sequence || machine.action.type === 'finish') return machine;
  return answer.type === 'failed' ? onFailed(machine, answer) : onDone(machine, answer);
}

/** Applies an interrupt. The first one decides the outcome; the caller aborts the action under way when the number changes. */
export function interruptAttempt(machine: AttemptMachine, interrupt: Interrupt): AttemptMachine {
  const { action } = machine;
  if (action.type === 'finish') return machine;
  // A rescue ends the guest itself: that it is gone then says nothing.
  if (interrupt.type === 'guest_lost' && action.type === 'collect' && action.rescue) return machine;
  if (machine.ending !== null) return interrupt.type === 'guest_lost' ? rescue(machine) : machine;
  const ending = endingOf(interrupt);
  const next = { ...machine, ending };
  // A collection or destruction under way is on the way out already: it is let finish.
  if (action.type === 'destroy') return next;
  if (action.type === 'collect') return interrupt.type === 'guest_lost' ? rescue(next) : next;
  return leave(next, interrupt.type === 'guest_lost');
}

function endingOf(interrupt: Interrupt): { outcome: Outcome; detail: string } {
  switch (interrupt.type) {
    case 'deadline':
      return { outcome: { kind: 'timed_out' }, detail: 'the time limit of the turn is over' };
    case 'cancel':
      return { outcome: { kind: 'cancelled' }, detail: '' };
    case 'lease_lost':
      return { outcome: { kind: 'lost', reason: 'lease_lost' }, detail: 'the lease was not renewed in time' };
    case 'guest_lost':
      return { outcome: { kind: 'lost', reason: 'guest_lost' }, detail: interrupt.detail };
    case 'spool_full':
      return { outcome: { kind: 'spool_full' }, detail: 'the spool of the attempt is full' };
    case 'budget_exceeded':
      return { outcome: { kind: 'budget_exceeded' }, detail: interrupt.detail };
  }
}

/** The way out from any step: collect what the agent's VM holds, destroy the VM, finish. */
function leave(machine: AttemptMachine, guestGone: boolean): AttemptMachine {
  const { ending, round } = machine;
  if (ending === null) throw new TypeError('an attempt leaves only with an ending');
  if (machine.vm === 'agent' && machine.uncollected) return act(machine, { type: 'collect', round, rescue: guestGone });
  if (machine.vm !== null) return act(machine, { type: 'destroy', purpose: machine.vm, round });
  return act(machine, { type: 'finish', outcome: ending.outcome, detail: ending.detail });
}

/** The guest is gone while its tree was being collected: read the tree from its disk instead. */
function rescue(machine: AttemptMachine): AttemptMachine {
  const { action } = machine;
  return action.type === 'collect' && !action.rescue ? act(machine, { ...action, rescue: true }) : machine;
}

function act(machine: AttemptMachine, action: AttemptAction): AttemptMachine {
  const vm = action.type === 'boot' ? action.purpose : machine.vm;
  const uncollected = action.type === 'set_up' || action.type === 'run_agent' ? machine.vm === 'agent' : machine.uncollected;
  return { ...machine, action, vm, uncollected, sequence: machine.sequence + 1 };
}

function onDone(machine: AttemptMachine, answer: AttemptAnswer): AttemptMachine {
  const { action, plan, round } = machine;
  switch (action.type) {
    case 'fetch':
      return toBoot(machine, 'agent');
    case 'prepare_layer':
      return act(machine, { type: 'boot', purpose: action.purpose, round });
    case 'boot':
      return act(
        { ...machine, isSetUp: answer.type === 'done' && answer.isSetUp === true },
        { type: 'inject', purpose: action.purpose, round },
      );
    case 'inject':
      return plan.hasSetup && !machine.isSetUp
        ? act(machine, { type: 'set_up', purpose: action.purpose, round })
        : afterSetup(machine, action.purpose);
    case 'set_up':
      return afterSetup(machine, action.purpose);
    case 'run_agent':
      return act(machine, { type: 'collect', round, rescue: false });
    case 'collect':
      return act(
        { ...machine, uncollected: false, checkDue: answer.type === 'done' && answer.checkDue !== false },
        { type: 'destroy', purpose: 'agent', round },
      );
    case 'check':
      return act(machine, { type: 'destroy', purpose: 'verify', round });
    case 'destroy':
      return afterDestroy({ ...machine, vm: null }, action.purpose);
    case 'decide_gate':
      return afterGate(machine, answer);
    case 'finish':
      return machine;
  }
}

function toBoot(machine: AttemptMachine, purpose: Purpose): AttemptMachine {
  const { plan, round } = machine;
  return act(machine, { type: plan.hasSetup && plan.wantsLayer === true ? 'prepare_layer' : 'boot', purpose, round });
}

function afterSetup(machine: AttemptMachine, purpose: Purpose): AttemptMachine {
  return act(machine, purpose === 'agent' ? { type: 'run_agent', round: machine.round } : { type: 'check', round: machine.round });
}

function afterDestroy(machine: AttemptMachine, purpose: Purpose): AttemptMachine {
  if (machine.ending !== null) return leave(machine, false);
  if (purpose === 'agent' && machine.plan.hasCheck && machine.checkDue) return toBoot(machine, 'verify');
  return act(machine, { type: 'decide_gate', round: machine.round });
}

function afterGate(machine: AttemptMachine, answer: AttemptAnswer): AttemptMachine {
  const verdict = answer.type === 'gate' ? answer.verdict : 'unrunnable';
  const detail = answer.type === 'gate' ? answer.detail : 'the gate gave no verdict';
  switch (verdict) {
    case 'satisfied':
      return act(machine, { type: 'finish', outcome: { kind: 'completed' }, detail });
    case 'next_round':
      return toBoot({ ...machine, round: machine.round + 1 }, 'agent');
    case 'capped':
      return act(machine, { type: 'finish', outcome: { kind: 'gate_capped' }, detail });
    case 'unrunnable':
      return act(machine, { type: 'finish', outcome: { kind: 'gate_unrunnable' }, detail });
  }
}

function onFailed(machine: AttemptMachine, answer: Extract<AttemptAnswer, { type: 'failed' }>): AttemptMachine {
  const { action } = machine;
  if (action.type === 'collect') {
    if (!action.rescue) return act(machine, { ...action, rescue: true });
    const ending = machine.ending ?? { outcome: { kind: 'uncollected' } as const, detail: answer.detail };
    return leave({ ...machine, uncollected: false, ending }, false);
  }
  // What cannot be destroyed is reported by the caller and left to the cleaner; the attempt still ends.
  if (action.type === 'destroy') return afterDestroy({ ...machine, vm: null }, action.purpose);
  // A layer saves time and is no condition: without it the set-up runs in the VM.
  if (action.type === 'prepare_layer' && machine.ending === null) return onDone(machine, { type: 'done' });
  const ending = machine.ending ?? { outcome: answer.outcome ?? outcomeOfFailure(action), detail: answer.detail };
  return leave({ ...machine, ending }, false);
}

function outcomeOfFailure(action: AttemptAction): Outcome {
  switch (action.type) {
    case 'fetch':
      return { kind: 'failed_to_start', reason: 'workspace_unavailable' };
    case 'prepare_layer':
    case 'boot':
      return { kind: 'failed_to_start', reason: 'boot_failed' };
    case 'inject':
      return { kind: 'failed_to_start', reason: 'inject_failed' };
    case 'set_up':
      return { kind: 'setup_failed' };
    case 'check':
    case 'decide_gate':
      return { kind: 'gate_unrunnable' };
    case 'run_agent':
      return { kind: 'lost', reason: 'guest_lost' };
    case 'collect':
    case 'destroy':
    case 'finish':
      return { kind: 'uncollected' };
  }
}
