import { headOfText, tailOfText } from './bound-text.ts';
import { CHECK_FEEDBACK_BYTES, COMMAND_FEEDBACK_BYTES, MAX_GATE_ROUNDS } from './limits.ts';
import type { Gate } from './plan-gate.ts';
import { type GateReason, StopGateError } from './reasons.ts';

/** What the host's run of the check came to. */
export interface CheckResult {
  /** `unrunnable` = the host could not start it or lost it; `not_run` = nobody tried. */
  readonly status: 'passed' | 'failed' | 'unrunnable' | 'not_run';
  /** Null or absent where a signal ended it. */
  readonly exitCode?: number | null;
  /** The check was ended at its time limit. */
  readonly timedOut?: boolean;
  /** End of the merged output; only its last {@link CHECK_FEEDBACK_BYTES} bytes are used. */
  readonly outputTail?: string | Uint8Array;
}

/** How the agent of a round ended, as the host saw it. */
export interface AgentEnd {
  /** Null where a signal ended it or it is not known. */
  readonly exitCode: number | null;
  readonly signal?: string | null;
  readonly timedOut?: boolean;
}

/** Whether a commit of the tree would differ from the base; `ignored_only` where nothing but new files that the base ignores is there. */
export type Change = boolean | 'ignored_only' | 'unknown';

/** What the host knows at the end of one round. */
export interface RoundFacts {
  /** Undefined where nothing is enforced but that the agent did not fail. */
  readonly gate: Gate | undefined;
  /** The round that just ended, from 1. */
  readonly round: number;
  /** Default {@link MAX_GATE_ROUNDS}. */
  readonly maxRounds?: number;
  /** Would a commit of the tree differ from the base? Decided by comparing two manifests on the host; `unknown` is never a pass. */
  readonly changed: Change;
  /** `not_run` where the gate has no check, or where the change condition failed first. */
  readonly check: CheckResult;
  /** What the check of the round before came to, where there was one: a program that is missing twice is not written by the agent. */
  readonly previousCheck?: Pick<CheckResult, 'exitCode'>;
  /** How the agent ended. Where the gate has a check, that decides alone; where it has none, an agent that failed is no success. */
  readonly agent?: AgentEnd;
}

/** The host's decision at the end of a round. */
export type RoundDecision =
  | { readonly verdict: 'satisfied'; readonly reason: GateReason }
  | { readonly verdict: 'next_round'; readonly reason: GateReason; readonly round: number; readonly feedback: string }
  | { readonly verdict: 'capped'; readonly reason: GateReason; readonly feedback: string }
  | { readonly verdict: 'unrunnable'; readonly reason: GateReason; readonly detail: string };

/**
 * Decides what follows a round: success, another round with the failure text, giving up, or "could not be judged".
 * The agent gets one reason at a time: the check counts only once the change condition holds. Without a check an agent that did not exit
 * with 0 has failed, whatever it changed.
 * A check whose shell says that a command is missing is sent back once, for the agent may have to write that command; missing again, or in
 * the last round, it could not be judged.
 * Throws `round_invalid` for a round outside 1..maxRounds and `check_contradictory` for a check that passed with another exit status than 0.
 */
export function decideRound(facts: RoundFacts): RoundDecision {
  const maxRounds = facts.maxRounds ?? MAX_GATE_ROUNDS;
  refuseBrokenFacts(facts, maxRounds);
  const { check } = facts;
  const gate = facts.gate ?? { requireChange: false };
  if (gate.requireChange && facts.changed === 'unknown') {
    return { verdict: 'unrunnable', reason: 'change_unknown', detail: 'the collected tree could not be compared with its base' };
  }
  if (gate.check === undefined && facts.agent !== undefined && !exitedCleanly(facts.agent))
    return refuse('agent_failed', agentFeedback(facts.agent), facts.round, maxRounds);
  if (gate.requireChange && facts.changed === false) return refuse('no_change', noChangeFeedback(), facts.round, maxRounds);
  if (gate.requireChange && facts.changed === 'ignored_only') return refuse('ignored_only', ignoredFeedback(), facts.round, maxRounds);
  if (gate.check === undefined) return { verdict: 'satisfied', reason: gate.requireChange ? 'changed' : 'no_gate' };
  if (check.status === 'not_run') {
    return { verdict: 'unrunnable', reason: 'check_not_run', detail: 'the gate has a check and the host did not run it' };
  }
  if (check.status === 'unrunnable') {
    const tail = outputOf(check);
    return { verdict: 'unrunnable', reason: 'check_unrunnable', detail: tail === '' ? 'the check could not be run' : tail };
  }
  if (check.status === 'passed') return { verdict: 'satisfied', reason: 'check_passed' };
  if (wasNotFound(check) && (facts.round >= maxRounds || wasNotFound(facts.previousCheck ?? {}))) {
    return { verdict: 'unrunnable', reason: 'check_unrunnable', detail: notFoundDetail(check) };
  }
  const reason = check.timedOut === true ? 'check_timed_out' : 'check_failed';
  return refuse(reason, failureFeedback(gate.check, check), facts.round, maxRounds);
}

/** Exit statuses by which a shell says that it could not run a command: found and not executable, not found. */
const NOT_FOUND_STATUSES: readonly number[] = [126, 127];

function wasNotFound(check: Pick<CheckResult, 'exitCode' | 'timedOut'>): boolean {
  return check.timedOut !== true && NOT_FOUND_STATUSES.includes(check.exitCode ?? 0);
}

function notFoundDetail(check: CheckResult): string {
  const what = check.exitCode === 126 ? 'found a command that cannot be executed' : 'did not find a command';
  return `the check ${what} (exit status ${check.exitCode}), and the agent did not mend it; put what the check needs into the image or the set-up. ${outputOf(check)}`.trimEnd();
}

/** True where the host must run the check now: the gate has one and the change condition holds. */
export function checkIsDue(gate: Gate, changed: Change): boolean {
  return gate.check !== undefined && (!gate.requireChange || changed === true);
}

function refuse(reason: GateReason, feedback: string, round: number, maxRounds: number): RoundDecision {
  if (round >= maxRounds) return { verdict: 'capped', reason, feedback };
  return { verdict: 'next_round', reason, round: round + 1, feedback };
}

function noChangeFeedback(): string {
  return (
    'Nothing in the working tree differs from the commit you started with, and this task needs a change. ' +
    'Make it, and leave the files in the working tree, where the ignore rules of that commit do not leave them out. If the task truly needs no change, say so as your last message and explain why; ' +
    'the task must then be started again with empty results allowed.\n'
  );
}

function ignoredFeedback(): string {
  return (
    'Only ignored files were changed: every new file in the working tree is left out by the ignore rules (`.gitignore`) of the commit you started ' +
    'with, and no other file differs, so there is nothing to commit. Leave the change in files that are not ignored; ' +
    '`git status --ignored` names those that are.\n'
  );
}

function exitedCleanly(agent: AgentEnd): boolean {
  return agent.exitCode === 0 && (agent.signal ?? null) === null && agent.timedOut !== true;
}

function agentFeedback(agent: AgentEnd): string {
  const end =
    agent.timedOut === true
      ? 'did not end within its time limit and was stopped'
      : agent.exitCode !== null
        ? `exited with status ${agent.exitCode}`
        : `was ended by ${/^SIG[A-Z0-9]{1,12}$/.test(agent.signal ?? '') ? agent.signal : 'a signal'}`;
  return (
    `Your session before this one ${end}, so its work does not count as done. The files it left are in the working tree. ` +
    'Look at them first, go on from there, and end without an error.\n'
  );
}

function failureFeedback(command: string, check: CheckResult): string {
  const end =
    check.timedOut === true
      ? 'did not end within its time limit and was stopped'
      : (check.exitCode ?? null) === null
        ? 'was ended by a signal'
        : `exited with status ${check.exitCode}`;
  const tail = outputOf(check);
  const output = tail === '' ? 'It printed nothing.\n' : `The end of its output:\n\n${tail}${tail.endsWith('\n') ? '' : '\n'}`;
  return `The check that decides whether this task is done ${end}.\n\nThe check:\n\n${headOfText(command, COMMAND_FEEDBACK_BYTES)}\n\n${output}\nFix the cause, then finish again.\n`;
}

function outputOf(check: CheckResult): string {
  return tailOfText(check.outputTail ?? '', CHECK_FEEDBACK_BYTES);
}

function refuseBrokenFacts(facts: RoundFacts, maxRounds: number): void {
  const { round, check } = facts;
  if (!Number.isSafeInteger(maxRounds) || maxRounds < 1 || !Number.isSafeInteger(round) || round < 1 || round > maxRounds) {
    throw new StopGateError('round_invalid', `round ${round} is not between 1 and ${maxRounds}`);
  }
  if (check.status === 'passed' && ((check.exitCode ?? 0) !== 0 || check.timedOut === true)) {
    throw new StopGateError('check_contradictory', `a check with exit status ${check.exitCode ?? 'none'} is said to have passed`);
  }
}
