import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AttemptAnswer, type AttemptMachine, answerAction, type Interrupt, interruptAttempt, startAttempt } from '../src/index.ts';

const DONE: AttemptAnswer = { type: 'done' };
const FAILED: AttemptAnswer = { type: 'failed', detail: 'broken' };
const gate = (verdict: 'satisfied' | 'next_round' | 'capped' | 'unrunnable'): AttemptAnswer => ({ type: 'gate', verdict, detail: '' });

/** The actions of an attempt whose actions answer as `answers` say, `done` where none is named. */
function trace(
  machine: AttemptMachine,
  answer: (action: string, round: number) => AttemptAnswer = () => DONE,
): { actions: string[]; end: AttemptMachine } {
  const actions: string[] = [];
  let now = machine;
  for (let count = 0; count < 200; count += 1) {
    const { action } = now;
    const purpose = 'purpose' in action ? `(${action.purpose})` : 'rescue' in action && action.rescue ? '(rescue)' : '';
    actions.push(`${action.type}${purpose}`);
    if (action.type === 'finish') return { actions, end: now };
    const fallback = action.type === 'decide_gate' ? gate('satisfied') : DONE;
    const given = answer(`${action.type}${purpose}`, now.round);
    now = answerAction(now, now.sequence, given === DONE ? fallback : given);
  }
  throw new Error(`no end: ${actions.join(' ')}`);
}

const outcome = (machine: AttemptMachine) => (machine.action.type === 'finish' ? machine.action.outcome : null);
const FULL = { hasSetup: true, hasCheck: true };

/** The machine when `action` of `round` is under way. */
function at(action: string, round = 1, plan: AttemptMachine['plan'] = FULL): AttemptMachine {
  let now = startAttempt(plan);
  for (let count = 0; count < 100; count += 1) {
    const purpose = 'purpose' in now.action ? `(${now.action.purpose})` : '';
    if (`${now.action.type}${purpose}` === action && now.round === round) return now;
    now = answerAction(now, now.sequence, now.action.type === 'decide_gate' ? gate('next_round') : DONE);
  }
  throw new Error(`never reached ${action}`);
}

describe('an undisturbed attempt', () => {
  it('goes through every step in order and verifies in a VM of its own', () => {
    expect(trace(startAttempt(FULL)).actions).toEqual([
      'fetch',
      'boot(agent)',
      'inject(agent)',
      'set_up(agent)',
      'run_agent',
      'collect',
      'destroy(agent)',
      'boot(verify)',
      'inject(verify)',
      'set_up(verify)',
      'check',
      'destroy(verify)',
      'decide_gate',
      'finish',
    ]);
  });

  it('prepares a layer before each boot where one is wanted, and sets up no VM that lies on one', () => {
    const laid = (action: string): AttemptAnswer => (action.startsWith('boot') ? { type: 'done', isSetUp: true } : DONE);
    expect(trace(startAttempt({ ...FULL, wantsLayer: true }), laid).actions).toEqual([
      'fetch',
      'prepare_layer(agent)',
      'boot(agent)',
      'inject(agent)',
      'run_agent',
      'collect',
      'destroy(agent)',
      'prepare_layer(verify)',
      'boot(verify)',
      'inject(verify)',
      'check',
      'destroy(verify)',
      'decide_gate',
      'finish',
    ]);
    const again = trace(startAttempt({ ...FULL, wantsLayer: true }), (action, round) =>
      action === 'decide_gate' && round === 1 ? gate('next_round') : laid(action),
    );
    expect(again.actions.filter((action) => action === 'prepare_layer(agent)')).toHaveLength(2);
  });

  it('runs the set-up in each VM that lies on no layer: there was none for it, or it could not be prepared', () => {
    const half = (action: string, round: number): AttemptAnswer => {
      if (action === 'prepare_layer(agent)') return FAILED;
      if (action === 'decide_gate' && round === 1) return gate('next_round');
      return action === 'boot(verify)' ? { type: 'done', isSetUp: true } : DONE;
    };
    const { actions, end } = trace(startAttempt({ ...FULL, wantsLayer: true }), half);
    expect(actions.filter((action) => action.startsWith('set_up'))).toEqual(['set_up(agent)', 'set_up(agent)']);
    expect(outcome(end)).toEqual({ kind: 'completed' });
    expect(trace(startAttempt({ hasSetup: false, hasCheck: true, wantsLayer: true })).actions).not.toContain('prepare_layer(agent)');
  });

  it('ends at once when it is interrupted while a layer is prepared, whatever comes of that', () => {
    for (const round of [1, 2]) {
      const machine = at('prepare_layer(verify)', round, { ...FULL, wantsLayer: true });
      const ended = interruptAttempt(machine, { type: 'cancel' });
      expect(outcome(ended)).toEqual({ kind: 'cancelled' });
      expect(answerAction(ended, machine.sequence, FAILED)).toBe(ended);
    }
  });

  it('leaves out set-up and verification where there is nothing to run', () => {
    expect(trace(startAttempt({ hasSetup: false, hasCheck: false })).actions).toEqual([
      'fetch',
      'boot(agent)',
      'inject(agent)',
      'run_agent',
      'collect',
      'destroy(agent)',
      'decide_gate',
      'finish',
    ]);
  });

  it('does not boot a verifying VM for a tree that is not worth checking', () => {
    const { actions } = trace(startAttempt(FULL), (action) => (action === 'collect' ? { type: 'done', checkDue: false } : DONE));
    expect(actions.slice(5)).toEqual(['collect', 'destroy(agent)', 'decide_gate', 'finish']);
  });

  it('goes into the next round with a new VM, and gives up where the gate says so', () => {
    const { actions, end } = trace(startAttempt({ hasSetup: false, hasCheck: true }), (action, round) =>
      action === 'decide_gate' ? gate(round < 3 ? 'next_round' : 'capped') : DONE,
    );
    expect(actions.filter((action) => action === 'boot(agent)')).toHaveLength(3);
    expect(outcome(end)).toEqual({ kind: 'gate_capped' });
  });
});

describe('a failing action', () => {
  it.each([
    ['fetch', { kind: 'failed_to_start', reason: 'workspace_unavailable' }],
    ['boot(agent)', { kind: 'failed_to_start', reason: 'boot_failed' }],
    ['inject(agent)', { kind: 'failed_to_start', reason: 'inject_failed' }],
    ['set_up(agent)', { kind: 'setup_failed' }],
    ['run_agent', { kind: 'lost', reason: 'guest_lost' }],
    ['boot(verify)', { kind: 'failed_to_start', reason: 'boot_failed' }],
    ['set_up(verify)', { kind: 'setup_failed' }],
    ['check', { kind: 'gate_unrunnable' }],
    ['decide_gate', { kind: 'gate_unrunnable' }],
  ])('%s ends the attempt as %j', (failing, expected) => {
    const { end } = trace(startAttempt(FULL), (action) => (action === failing ? FAILED : DONE));
    expect(outcome(end)).toEqual(expected);
  });

  it('collects what the agent left when its set-up failed', () => {
    const { actions } = trace(startAttempt(FULL), (action) => (action === 'set_up(agent)' ? FAILED : DONE));
    expect(actions.slice(-3)).toEqual(['collect', 'destroy(agent)', 'finish']);
  });

  it('reads the disk when the guest cannot be asked, and is uncollected only when that fails too', () => {
    const rescued = trace(startAttempt(FULL), (action) => (action === 'collect' ? FAILED : DONE));
    expect(rescued.actions).toContain('collect(rescue)');
    expect(outcome(rescued.end)).toEqual({ kind: 'completed' });
    const lost = trace(startAttempt(FULL), (action) => (action.startsWith('collect') ? FAILED : DONE));
    expect(outcome(lost.end)).toEqual({ kind: 'uncollected' });
  });

  it('carries an outcome of its own where the action knows better', () => {
    const { end } = trace(startAttempt(FULL), (action) =>
      action === 'run_agent' ? { type: 'failed', detail: 'X', outcome: { kind: 'refused', reason: 'environment' } } : DONE,
    );
    expect(outcome(end)).toEqual({ kind: 'refused', reason: 'environment' });
  });
});

describe('an interrupt', () => {
  const interrupts: [Interrupt, unknown][] = [
    [{ type: 'deadline' }, { kind: 'timed_out' }],
    [{ type: 'cancel' }, { kind: 'cancelled' }],
    [{ type: 'lease_lost' }, { kind: 'lost', reason: 'lease_lost' }],
    [
      { type: 'guest_lost', detail: '' },
      { kind: 'lost', reason: 'guest_lost' },
    ],
    [{ type: 'spool_full' }, { kind: 'spool_full' }],
    [{ type: 'budget_exceeded', detail: 'the budget is reached' }, { kind: 'budget_exceeded' }],
  ];

  it.each(interrupts)('%j while the agent works: collected, destroyed, finished', (interrupt, expected) => {
    const { actions, end } = trace(interruptAttempt(at('run_agent'), interrupt));
    expect(actions).toEqual([interrupt.type === 'guest_lost' ? 'collect(rescue)' : 'collect', 'destroy(agent)', 'finish']);
    expect(outcome(end)).toEqual(expected);
  });

  it('during the check destroys the verifying VM and collects nothing from it', () => {
    expect(trace(interruptAttempt(at('check'), { type: 'cancel' })).actions).toEqual(['destroy(verify)', 'finish']);
  });

  it('before any VM is up finishes at once', () => {
    expect(trace(interruptAttempt(at('fetch'), { type: 'cancel' })).actions).toEqual(['finish']);
  });

  it('during a boot destroys what may be up', () => {
    expect(trace(interruptAttempt(at('boot(agent)'), { type: 'cancel' })).actions).toEqual(['destroy(agent)', 'finish']);
  });

  it('lets a collection under way finish, and the first interrupt decides', () => {
    const machine = interruptAttempt(interruptAttempt(at('collect'), { type: 'deadline' }), { type: 'cancel' });
    const { actions, end } = trace(machine);
    expect(actions).toEqual(['collect', 'destroy(agent)', 'finish']);
    expect(outcome(end)).toEqual({ kind: 'timed_out' });
  });

  it('makes the answer of the overtaken action stale', () => {
    const before = at('run_agent');
    const after = interruptAttempt(before, { type: 'cancel' });
    expect(answerAction(after, before.sequence, DONE)).toBe(after);
  });
});

describe('any attempt', () => {
  it('ends, destroys every VM it booted, and collects whenever an agent may have worked', () => {
    const answer = fc.constantFrom<AttemptAnswer>(DONE, DONE, DONE, FAILED);
    const interrupt = fc.constantFrom<Interrupt | null>(
      null,
      null,
      null,
      { type: 'deadline' },
      { type: 'guest_lost', detail: '' },
      { type: 'cancel' },
    );
    const verdict = fc.constantFrom<'satisfied' | 'next_round' | 'capped'>('satisfied', 'next_round', 'capped');
    fc.assert(
      fc.property(
        fc.boolean(),
        fc.boolean(),
        fc.infiniteStream(answer),
        fc.infiniteStream(interrupt),
        fc.infiniteStream(verdict),
        (hasSetup, hasCheck, answers, interrupts, verdicts) => {
          let now = startAttempt({ hasSetup, hasCheck });
          let up = 0;
          let owed = false;
          for (let count = 0; now.action.type !== 'finish'; count += 1) {
            if (count > 400) return;
            const { action } = now;
            if (action.type === 'boot') up += 1;
            if (action.type === 'run_agent') owed = true;
            if (action.type === 'destroy') {
              up -= 1;
              if (action.purpose === 'agent') expect(owed).toBe(false);
            }
            if (action.type === 'collect') owed = false;
            const hit = interrupts.next().value;
            const before = now.sequence;
            if (hit) now = interruptAttempt(now, hit);
            if (now.sequence !== before) continue;
            const given = action.type === 'decide_gate' ? gate(count > 150 ? 'capped' : verdicts.next().value) : answers.next().value;
            now = answerAction(now, now.sequence, given);
          }
          expect(up).toBe(0);
          expect(owed).toBe(false);
        },
      ),
    );
  });

  it('does not take the end of the guest that a rescue brings about for a loss', () => {
    const collecting = at('collect');
    const rescuing = answerAction(collecting, collecting.sequence, FAILED);
    expect(rescuing.action).toMatchObject({ type: 'collect', rescue: true });
    const told = interruptAttempt(rescuing, { type: 'guest_lost', detail: 'exit 0' });
    expect(told).toBe(rescuing);
    expect(outcome(trace(told, (action) => (action === 'collect(rescue)' ? FAILED : DONE)).end)).toEqual({ kind: 'uncollected' });
  });
});
