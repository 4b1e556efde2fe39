import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commitDate, planCommit, planSyntheticBase, SUBJECT_MAX_CHARS } from '../src/index.ts';

const INPUT = {
  title: 'Fix it',
  missionId: 'msn_1',
  phaseId: 'phs_1',
  attempt: 2,
  snapshotId: 'ab',
  check: 'verified',
  atSeconds: 1_700_000_000,
} as const;

describe('the commit of a delivery', () => {
  it('names mission, phase, attempt, snapshot and check', () => {
    expect(planCommit(INPUT)).toEqual({
      message:
        'Fix it\n\nFirecrew-Mission: msn_1\nFirecrew-Phase: phs_1\nFirecrew-Attempt: 2\nFirecrew-Snapshot: ab\nFirecrew-Check: verified\n',
      author: { name: 'Firecrew', email: 'firecrew@localhost' },
      committer: { name: 'Firecrew', email: 'firecrew@localhost' },
      date: '@1700000000 +0000',
    });
  });

  it('lets no text of a caller start a line of its own', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (title, missionId) => {
        const lines = planCommit({ title, missionId, check: 'unverified', atSeconds: 0 }).message.split('\n');
        expect(lines).toHaveLength(5);
        expect(lines[1]).toBe('');
        expect(lines[2]?.startsWith('Firecrew-Mission: ')).toBe(true);
        expect(lines[3]).toBe('Firecrew-Check: unverified');
        expect([...(lines[0] ?? '')].length).toBeLessThanOrEqual(SUBJECT_MAX_CHARS + 'Firecrew: '.length);
      }),
    );
  });

  it('cleans an identity of what git would refuse or read otherwise', () => {
    const plan = planCommit({ ...INPUT, identity: { name: ' <A>\nB. ', email: '<>' } });
    expect(plan.author).toEqual({ name: 'A B', email: 'firecrew@localhost' });
  });

  it('keeps a subject that would be dropped as a comment', () => {
    expect(planCommit({ ...INPUT, title: '# heading' }).message).toMatch(/^Firecrew: # heading\n/);
    expect(planCommit({ ...INPUT, title: '\n' }).message).toMatch(/^Firecrew:\n/);
  });

  it.each([-1, 1.5, Number.NaN, 2 ** 33])('refuses %d as a time', (at) => {
    expect(() => commitDate(at)).toThrow(expect.objectContaining({ code: 'invalid_date' }));
  });

  it('accepts the times at the edges', () => {
    expect(commitDate(0)).toBe('@0 +0000');
    expect(commitDate(2 ** 33 - 1)).toBe('@8589934591 +0000');
  });

  it('has a plan for the commit that stands for uncommitted changes', () => {
    expect(planSyntheticBase({ missionId: 'msn_1', atSeconds: 5 }).message).toMatch(/^Uncommitted changes at the start of the mission\n/);
  });
});
