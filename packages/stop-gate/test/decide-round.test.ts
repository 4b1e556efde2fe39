import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AgentEnd,
  CHECK_FEEDBACK_BYTES,
  type CheckResult,
  COMMAND_FEEDBACK_BYTES,
  checkIsDue,
  decideRound,
  GATE_REASONS,
  type Gate,
  MAX_GATE_ROUNDS,
  type RoundFacts,
  STOP_GATE_ERROR_CODES,
} from '../src/index.ts';

const both: Gate = { requireChange: true, check: 'npm test' };
const checkOnly: Gate = { requireChange: false, check: 'npm test' };
const changeOnly: Gate = { requireChange: true };
const failed: CheckResult = { status: 'failed', exitCode: 3, outputTail: 'not ok 1 - adds\n' };
const notRun: CheckResult = { status: 'not_run' };

describe('the decision after a round', () => {
  it.each([
    { gate: both, changed: true, check: { status: 'passed', exitCode: 0 }, verdict: 'satisfied', reason: 'check_passed' },
    { gate: changeOnly, changed: true, check: notRun, verdict: 'satisfied', reason: 'changed' },
    { gate: checkOnly, changed: false, check: { status: 'passed' }, verdict: 'satisfied', reason: 'check_passed' },
    { gate: checkOnly, changed: 'unknown', check: { status: 'passed' }, verdict: 'satisfied', reason: 'check_passed' },
    { gate: both, changed: false, check: notRun, verdict: 'next_round', reason: 'no_change' },
    { gate: both, changed: false, check: failed, verdict: 'next_round', reason: 'no_change' },
    { gate: both, changed: false, check: { status: 'passed' }, verdict: 'next_round', reason: 'no_change' },
    { gate: both, changed: 'ignored_only', check: notRun, verdict: 'next_round', reason: 'ignored_only' },
    { gate: changeOnly, changed: 'ignored_only', check: notRun, verdict: 'next_round', reason: 'ignored_only' },
    { gate: checkOnly, changed: 'ignored_only', check: { status: 'passed' }, verdict: 'satisfied', reason: 'check_passed' },
    { gate: both, changed: true, check: failed, verdict: 'next_round', reason: 'check_failed' },
    { gate: both, changed: true, check: { ...failed, exitCode: null, timedOut: true }, verdict: 'next_round', reason: 'check_timed_out' },
    { gate: both, changed: 'unknown', check: { status: 'passed' }, verdict: 'unrunnable', reason: 'change_unknown' },
    { gate: changeOnly, changed: 'unknown', check: notRun, verdict: 'unrunnable', reason: 'change_unknown' },
    { gate: both, changed: true, check: { status: 'unrunnable' }, verdict: 'unrunnable', reason: 'check_unrunnable' },
    { gate: both, changed: true, check: notRun, verdict: 'unrunnable', reason: 'check_not_run' },
  ] as const)('is $verdict for $reason (changed $changed, check $check.status)', ({ gate, changed, check, verdict, reason }) => {
    expect(decideRound({ gate, round: 1, changed, check })).toMatchObject({ verdict, reason });
  });

  it('starts rounds 2 and 3 with the failure text and gives up after round 3', () => {
    const decisions = [1, 2, 3].map((round) => decideRound({ gate: both, round, changed: true, check: failed }));
    expect(decisions.map((decision) => decision.verdict)).toEqual(['next_round', 'next_round', 'capped']);
    expect(decisions[0]).toMatchObject({ round: 2 });
    expect(decisions[2]).toMatchObject({ reason: 'check_failed', feedback: expect.stringContaining('not ok 1 - adds') });
  });

  it.each([126, 127])('sends a check that ended with %d back once, and calls it unrunnable when nothing mended it', (exitCode) => {
    const missing: CheckResult = { status: 'failed', exitCode, outputTail: 'sh: 1: checker: not found' };
    const first = decideRound({ gate: both, round: 1, changed: true, check: missing });
    expect(first).toMatchObject({ verdict: 'next_round', reason: 'check_failed', feedback: expect.stringContaining('checker') });
    const again = decideRound({ gate: both, round: 2, changed: true, check: missing, previousCheck: missing });
    expect(again).toMatchObject({ verdict: 'unrunnable', reason: 'check_unrunnable', detail: expect.stringContaining('checker') });
    const other = decideRound({ gate: both, round: 2, changed: true, check: missing, previousCheck: failed });
    expect(other).toMatchObject({ verdict: 'next_round' });
    expect(decideRound({ gate: both, round: 3, changed: true, check: missing, previousCheck: failed })).toMatchObject({
      verdict: 'unrunnable',
    });
    expect(decideRound({ gate: both, round: 1, maxRounds: 1, changed: true, check: missing }).verdict).toBe('unrunnable');
    const late: CheckResult = { ...missing, timedOut: true };
    expect(decideRound({ gate: both, round: 3, changed: true, check: late, previousCheck: late })).toMatchObject({ verdict: 'capped' });
  });

  it('passes in the last round as in any other', () => {
    expect(decideRound({ gate: both, round: MAX_GATE_ROUNDS, changed: true, check: { status: 'passed' } }).verdict).toBe('satisfied');
  });

  it('feeds back status, command and the end of the output', () => {
    const decision = decideRound({ gate: both, round: 1, changed: true, check: failed });
    expect(decision).toMatchObject({ feedback: expect.stringMatching(/status 3[\s\S]*npm test[\s\S]*not ok 1 - adds/) });
  });

  it('says how to tell that no change is needed', () => {
    expect(decideRound({ gate: both, round: 1, changed: false, check: notRun })).toMatchObject({
      feedback: expect.stringContaining('no change'),
    });
  });

  it('shows the last bytes of a long output, never more than the limit, cut between characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 0, maxLength: 4000 }), (text) => {
        const marked = `${'x'.repeat(CHECK_FEEDBACK_BYTES)}${text}`;
        const shown = decideRound({
          gate: checkOnly,
          round: 1,
          changed: true,
          check: { status: 'failed', exitCode: 1, outputTail: marked },
        });
        const empty = decideRound({ gate: checkOnly, round: 1, changed: true, check: { status: 'failed', exitCode: 1, outputTail: '-' } });
        if (shown.verdict !== 'next_round' || empty.verdict !== 'next_round') return false;
        const bytes = (value: string): number => new TextEncoder().encode(value).length;
        return bytes(shown.feedback) - bytes(empty.feedback) <= CHECK_FEEDBACK_BYTES;
      }),
    );
  });

  it('repeats a long command only in part, cut between characters', () => {
    const feedbackOf = (check: string): string => {
      const decision = decideRound({ gate: { requireChange: false, check }, round: 1, changed: true, check: failed });
      return decision.verdict === 'next_round' ? decision.feedback : '';
    };
    const fits = 'x'.repeat(COMMAND_FEEDBACK_BYTES);
    expect(feedbackOf(fits)).toContain(`${fits}\n`);
    expect(feedbackOf(`${fits.slice(1)}é`)).toContain(`${fits.slice(1)}...\n`);
  });

  it('strips escape sequences that output could send to a terminal, and survives bytes that are no text', () => {
    const outputTail = new Uint8Array([0x1b, 0x5b, 0x32, 0x4a, 0xff, 0xfe, 0x00, 0x6f, 0x6b]);
    const decision = decideRound({ gate: checkOnly, round: 1, changed: true, check: { status: 'failed', exitCode: 1, outputTail } });
    expect(decision.verdict === 'next_round' && /[\u0000-\u0008\u001b]/.test(decision.feedback)).toBe(false);
    expect(decision).toMatchObject({ feedback: expect.stringContaining('ok') });
  });

  it.each([0, -1, 1.5, 4, Number.NaN])('refuses round %d of 3', (round) => {
    expect(() => decideRound({ gate: both, round, changed: true, check: failed })).toThrow(
      expect.objectContaining({ code: 'round_invalid' }),
    );
  });

  it('refuses a check that is said to have passed with another status than 0', () => {
    const check: CheckResult = { status: 'passed', exitCode: 1 };
    expect(() => decideRound({ gate: both, round: 1, changed: true, check })).toThrow(
      expect.objectContaining({ code: 'check_contradictory' }),
    );
  });

  it('never satisfies a gate with a check unless the check passed', () => {
    const status = fc.constantFrom<CheckResult['status']>('failed', 'unrunnable', 'not_run');
    const changed = fc.constantFrom<boolean | 'unknown'>(true, false, 'unknown');
    fc.assert(
      fc.property(status, changed, fc.boolean(), fc.integer({ min: 1, max: 3 }), (state, change, requireChange, round) => {
        const gate = { requireChange, check: 'x' };
        return decideRound({ gate, round, changed: change, check: { status: state } }).verdict !== 'satisfied';
      }),
    );
  });

  it('calls the check due only once the change condition holds', () => {
    expect(checkIsDue(both, true)).toBe(true);
    expect(checkIsDue(both, false)).toBe(false);
    expect(checkIsDue(both, 'unknown')).toBe(false);
    expect(checkIsDue(checkOnly, false)).toBe(true);
    expect(checkIsDue(changeOnly, true)).toBe(false);
  });
});

describe('an agent that failed', () => {
  const crashed = { exitCode: 1, signal: null, timedOut: false };
  const decide = (over: Partial<RoundFacts>) => decideRound({ gate: changeOnly, round: 1, changed: true, check: notRun, ...over });

  it.each<[string, AgentEnd, RegExp]>([
    ['an exit status', crashed, /exited with status 1/],
    ['a signal', { exitCode: null, signal: 'SIGKILL', timedOut: false }, /ended by SIGKILL/],
    ['a signal nobody can name', { exitCode: null, signal: 'x; rm -rf /', timedOut: false }, /ended by a signal/],
    ['an end that is not known', { exitCode: null }, /ended by a signal/],
    ['its time limit', { exitCode: 0, timedOut: true }, /within its time limit/],
    ['a signal beside an exit status of 0', { exitCode: 0, signal: 'SIGTERM' }, /exited with status 0/],
  ])('by %s is no success where there is no check', (_how, agent, feedback) => {
    for (const gate of [changeOnly, undefined])
      expect(decide({ gate, agent })).toMatchObject({
        verdict: 'next_round',
        reason: 'agent_failed',
        round: 2,
        feedback: expect.stringMatching(feedback),
      });
  });

  it('is told before a missing change, and given up on after the last round', () => {
    expect(decide({ agent: crashed, changed: false })).toMatchObject({ reason: 'agent_failed' });
    expect(decide({ agent: crashed, round: MAX_GATE_ROUNDS })).toMatchObject({ verdict: 'capped', reason: 'agent_failed' });
  });

  it('is not told where the tree could not be compared: that cannot be judged', () => {
    expect(decide({ agent: crashed, changed: 'unknown' })).toMatchObject({ verdict: 'unrunnable', reason: 'change_unknown' });
  });

  it('does not matter where there is a check, which decides alone', () => {
    for (const gate of [both, checkOnly]) {
      expect(decide({ gate, agent: crashed, check: { status: 'passed', exitCode: 0 } })).toMatchObject({
        verdict: 'satisfied',
        reason: 'check_passed',
      });
      expect(decide({ gate, agent: crashed, check: failed })).toMatchObject({ reason: 'check_failed' });
    }
  });

  it('that exited with 0, or of whom nothing is said, is judged by the gate as before', () => {
    for (const agent of [{ exitCode: 0, signal: null, timedOut: false }, { exitCode: 0 }])
      expect(decide({ agent })).toEqual({ verdict: 'satisfied', reason: 'changed' });
    expect(decide({})).toEqual({ verdict: 'satisfied', reason: 'changed' });
    expect(decide({ gate: undefined })).toEqual({ verdict: 'satisfied', reason: 'no_gate' });
  });

  it('never satisfies a gate without a check', () => {
    const agents = fc.record({
      exitCode: fc.option(fc.integer({ min: 1, max: 255 }), { nil: null }),
      signal: fc.constantFrom(null, 'SIGKILL'),
    });
    fc.assert(
      fc.property(
        agents,
        fc.boolean(),
        fc.constantFrom(changeOnly, undefined),
        fc.integer({ min: 1, max: 3 }),
        (agent, changed, gate, round) => {
          return decideRound({ gate, round, changed, check: notRun, agent }).verdict !== 'satisfied';
        },
      ),
    );
  });
});

describe('what others can see', () => {
  it('is fixed: limits, reasons and codes', () => {
    expect([MAX_GATE_ROUNDS, CHECK_FEEDBACK_BYTES]).toEqual([3, 1500]);
    expect(GATE_REASONS).toEqual([
      'check_passed',
      'changed',
      'no_gate',
      'no_change',
      'ignored_only',
      'agent_failed',
      'check_failed',
      'check_timed_out',
      'check_unrunnable',
      'check_not_run',
      'change_unknown',
    ]);
    expect(STOP_GATE_ERROR_CODES).toEqual([
      'gate_invalid',
      'round_invalid',
      'check_contradictory',
      'glob_invalid',
      'hook_path_unsafe',
      'hook_invalid',
    ]);
  });
});
