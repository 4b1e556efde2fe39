import { type MissionView, missionViewSchema, type PolicyWarning } from '@firecrew/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderMission, renderMissions } from '../src/commands/missions.ts';

const AT = '2030-01-01T00:00:00.000Z';
const TURN = 'trn_0000000000000000';

/** A mission that failed, with texts that a guest, a repository or a remote may have written. */
function failed(text: string, denied: NonNullable<MissionView['end']>['denied'] = []): MissionView {
  return missionViewSchema.parse({
    id: 'msn_0000000000000000',
    title: text,
    state: 'failed',
    createdAt: AT,
    endedAt: AT,
    branch: text,
    outcome: { kind: 'gate_unrunnable' },
    version: 1,
    baseCommit: null,
    baseSynthetic: false,
    repository: 'upload',
    waiting: text,
    end: { missionState: 'failed', outcome: { kind: 'gate_unrunnable' }, exitCode: 1, detail: text, delivery: null, denied },
    phases: [
      {
        id: 'phs_0000000000000000',
        position: 0,
        kind: 'coding',
        task: text,
        state: 'failed',
        iteration: 1,
        outcome: { kind: 'gate_unrunnable' },
        delivery: null,
        attempts: [
          {
            turnId: TURN,
            attempt: 1,
            nodeId: null,
            state: 'ended',
            outcome: { kind: 'gate_unrunnable' },
            detail: text,
            startedAt: AT,
            endedAt: AT,
          },
        ],
      },
    ],
  });
}

describe('a mission with words of the policy', () => {
  it('says that it is a learning run, and what the policy left out of what it asked for', () => {
    const base = failed('x');
    const warning: PolicyWarning = {
      code: 'policy_above_ceiling',
      part: 'run',
      origin: 'mission',
      entry: 'a.example',
      leaves: [],
      bound: 'preset',
      message: 'the agent and its check will not reach a.example',
      action: 'Ask the operator.',
    };
    const lines = renderMission({ ...base, learning: { withCredentials: false }, warnings: [warning] });
    expect(lines).toContain('policy: the agent and its check will not reach a.example. Ask the operator.');
    expect(lines.join('\n')).toMatch(/^learning run, without credentials: .*firecrew policy learn msn_/m);
    expect(renderMission(base).join('\n')).not.toMatch(/learning run|policy: /);
  });
});

describe('a mission that is shown', () => {
  it('names how it ended, in words and with its whole detail', () => {
    const detail = `${'the check did not find a command, '.repeat(8)}end of it`;
    const shown = renderMission(failed(detail)).join('\n');
    expect(shown).toContain('the check could not be run');
    expect(shown).toContain(`${TURN}.1: ${detail}`);
  });

  it('names what was refused, some of it, and where the rest is told', () => {
    const denied = Array.from({ length: 7 }, (_, at) => ({ host: `h${at}.example`, port: 443, reason: 'not_listed', connections: 3 }));
    const shown = renderMission(failed('x', denied)).filter((line) => line.startsWith('denied'));
    expect(shown).toHaveLength(6);
    expect(shown[0]).toMatch(/^denied {2}h0\.example:443, 3 times \(/);
    expect(shown.at(-1)).toBe('denied  2 hosts more; what would allow it: firecrew policy explain msn_0000000000000000');
    expect(renderMission(failed('x')).filter((line) => line.startsWith('denied'))).toEqual([]);
  });

  it('moves no cursor and starts no line of its own, whatever a guest wrote', () => {
    const piece = fc.oneof(fc.constantFrom('\u001b[2J', '\u001b]0;x\u0007', '\r', '\n', '\u009b1m', '\u202e', '\b'), fc.string());
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const lines = [
          ...renderMission(failed(pieces.join(''), [{ host: pieces.join(''), port: 1, reason: pieces.join(''), connections: 1 }])),
          ...renderMissions([failed(pieces.join(''))]),
        ];
        expect(lines.filter((line) => /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(line))).toEqual([]);
      }),
    );
  });
});
