import { CodedError, codeOf, messageOf } from '@firecrew/base';
import {
  type AttemptAction,
  type AttemptAnswer,
  type AttemptMachine,
  answerAction,
  decideCause,
  type Interrupt,
  interruptAttempt,
  type Outcome,
  startAttempt,
} from '@firecrew/mission';
import { type AttemptResult, type AttemptStep, causeSchema, GENERATION } from '@firecrew/protocol';
import { gradeVerification } from '@firecrew/stop-gate';
import type { AttemptContext, Shortage } from './attempt-context.ts';
import { describeExit } from './describe-exit.ts';
import { prepareLayer } from './prepare-layer.ts';
import { boot, check, collect, decideGate, destroy, fetchInputs, inject, runAgent, setUp } from './steps.ts';

/** Time an aborted step may take to come back before the attempt goes on without it. */
const ABORT_GRACE_MS = 10_000;

/** Drives one attempt: asks its machine what is next, does it, and tells the machine what came of it. One owner of the state, one step at a time. */
export class AttemptRun {
  readonly #context: AttemptContext;
  readonly #startedAt: string;
  #machine: AttemptMachine;
  #abort = new AbortController();

  constructor(context: AttemptContext, startedAt: string) {
    this.#context = context;
    this.#startedAt = startedAt;
    this.#machine = startAttempt({
      hasSetup: context.spec.setup !== null,
      hasCheck: context.spec.check !== null,
      wantsLayer: context.spec.setup?.layer !== undefined,
    });
  }

  /** The step under way, for people. */
  get step(): string {
    return this.#machine.action.type;
  }

  /** Runs to the end and gives the result. Never rejects for what a guest does. */
  async run(): Promise<AttemptResult> {
    for (;;) {
      const { action, sequence } = this.#machine;
      if (action.type === 'finish') return this.#finish(action.outcome, action.detail);
      this.#abort = new AbortController();
      this.#tellStep(action);
      const answer = await this.#perform(action, this.#abort.signal);
      this.#machine = answerAction(this.#machine, sequence, answer);
    }
  }

  /** Ends the attempt from outside; what its VM holds is still collected. */
  interrupt(interrupt: Interrupt): void {
    const before = this.#machine.sequence;
    this.#machine = interruptAttempt(this.#machine, interrupt);
    if (this.#machine.sequence !== before) this.#abort.abort();
  }

  async #perform(action: AttemptAction, signal: AbortSignal): Promise<AttemptAnswer> {
    const work = this.#step(action, signal).catch((error: unknown): AttemptAnswer => {
      if (action.type === 'boot') this.#context.state.bootFault = bootFaultOf(error);
      return failureOf(error, action);
    });
    const overtaken = new Promise<AttemptAnswer>((resolve) => {
      signal.addEventListener('abort', () => setTimeout(() => resolve({ type: 'failed', detail: 'overtaken' }), ABORT_GRACE_MS).unref(), {
        once: true,
      });
    });
    return await Promise.race([work, overtaken]);
  }

  async #step(action: AttemptAction, signal: AbortSignal): Promise<AttemptAnswer> {
    const context = this.#context;
    switch (action.type) {
      case 'fetch':
        return await fetchInputs(context);
      case 'prepare_layer':
        return await prepareLayer(context, action.purpose, action.round, signal);
      case 'boot':
        return await this.#boot(action.purpose, action.round);
      case 'inject':
        return await inject(context);
      case 'set_up':
        return await setUp(context, action.purpose, action.round, signal);
      case 'run_agent':
        return await runAgent(context, action.round, signal);
      case 'collect':
        return await collect(context, action.round, action.rescue);
      case 'destroy':
        return await destroy(context);
      case 'check':
        return await check(context, action.round, signal);
      case 'decide_gate':
        return decideGate(context, action.round);
      case 'finish':
        return { type: 'done' };
    }
  }

  async #boot(purpose: 'agent' | 'verify', round: number): Promise<AttemptAnswer> {
    const answer = await boot(this.#context, purpose, round);
    const { vm } = this.#context.state;
    // A VM that ends by itself is lost; one that we destroy has left the state by then.
    void vm?.exited.then((exit) => {
      const { action } = this.#machine;
      if (this.#context.state.vm === vm && action.type !== 'destroy') {
        // A rescue ends the guest itself.
        if (action.type !== 'collect' || !action.rescue) this.#context.state.vmEnd ??= exit.cause ?? null;
        this.interrupt({ type: 'guest_lost', detail: `the guest ended by itself (${describeExit(exit)})` });
      }
    });
    return answer;
  }

  #tellStep(action: AttemptAction): void {
    const step = STEP_OF[action.type];
    if (step === null) return;
    const purpose = 'purpose' in action ? action.purpose : action.type === 'check' ? 'verify' : 'agent';
    this.#context.events.add({ kind: 'step', step, purpose, round: 'round' in action ? action.round : 0 });
  }

  #finish(outcome: Outcome, why: string): AttemptResult {
    const { spec, events, state, gate, model, log } = this.#context;
    const { bootFault, vmEnd, exhausted } = state;
    const facts = { boot: bootFault ?? undefined, vmEnd: vmEnd ?? undefined, exhausted: exhausted?.reason };
    const code = decideCause({ outcome, ...facts });
    const cause = code === undefined ? {} : { cause: code };
    const detail = withCause(code, exhausted, why).slice(0, 4000);
    if (log.dropped > 0) {
      events.add({
        kind: 'notice',
        level: 'warning',
        code: 'log_cut',
        message: `${log.dropped} bytes of output beyond the limit of ${spec.limits.logBytes} were dropped`,
      });
    }
    events.add({ kind: 'attempt.ended', outcome, detail, ...cause });
    const { tree } = state;
    const passed = outcome.kind === 'completed';
    const verification = verificationOf(this.#context, passed);
    const modelUsage = model.summary();
    return {
      generation: GENERATION,
      turnId: spec.turnId,
      attempt: spec.attempt,
      epoch: spec.epoch,
      outcome,
      detail,
      ...cause,
      isolation: state.isolation,
      rounds: state.rounds,
      tree: tree?.captured ?? null,
      checkpoint: state.checkpoint,
      verification,
      checkInputsChanged: [...state.checkInputsChanged].slice(0, 500),
      restoredPaths: [...state.restoredPaths].slice(0, 500),
      egress: gate.summary(),
      ...(modelUsage === undefined ? {} : { model: modelUsage }),
      logBytes: log.bytes,
      lastSeq: events.lastSeq,
      startedAt: this.#startedAt,
      endedAt: new Date().toISOString(),
    };
  }
}

/** How a step of the machine is told; deciding is no step of its own. */
const STEP_OF: Readonly<Record<AttemptAction['type'], AttemptStep | null>> = {
  fetch: 'fetching',
  // It is the set-up, in a VM of its own.
  prepare_layer: 'setting_up',
  boot: 'booting',
  inject: 'injecting',
  set_up: 'setting_up',
  run_agent: 'agent',
  collect: 'collecting',
  destroy: 'destroying',
  check: 'verifying',
  decide_gate: null,
  finish: null,
};

function verificationOf({ spec, state }: AttemptContext, passed: boolean): AttemptResult['verification'] {
  if (spec.check === null) return 'none';
  const delivered = state.tree?.captured.snapshotId ?? '';
  const grade = gradeVerification({
    mode: spec.gate.mode,
    check: passed ? 'passed' : 'not_passed',
    checkedSnapshot: state.checkedSnapshot ?? '',
    deliveredSnapshot: delivered,
  });
  return grade.level === 'none' ? 'failed' : grade.level;
}

function failureOf(error: unknown, action: AttemptAction): AttemptAnswer {
  const code = error instanceof CodedError ? ` (${error.code})` : '';
  return { type: 'failed', detail: `${action.type.replaceAll('_', ' ')}: ${messageOf(error)}${code}`.slice(0, 2000) };
}

/** The code of what a driver could not boot for, not that it could not. */
function bootFaultOf(error: unknown): string | null {
  const fault = codeOf(error) === 'boot_failed' && error instanceof Error ? error.cause : error;
  return causeSchema.safeParse(codeOf(fault)).data ?? null;
}

/** Words for a person that begin with the code, and name what ran out. */
function withCause(code: string | undefined, exhausted: Shortage | null, why: string): string {
  const words = code === exhausted?.reason ? [exhausted?.message, why] : [why];
  const text = words.filter((part) => part !== undefined && part !== '').join('; ');
  return code === undefined ? why : `${code}: ${text}`;
}
