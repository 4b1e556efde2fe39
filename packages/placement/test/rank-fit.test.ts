import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FitNode, NodeVerdict } from '../src/judge-node.ts';
import { compareFit, rankFit } from '../src/rank-fit.ts';

const verdict = (index: number, slots: number, headroomPercent: number): NodeVerdict => {
  const named = { id: `n${index}`, name: `n${index}` };
  if (slots === 0)
    return { fit: false, ...named, reason: 'not_connected', capable: true, lacksRoute: false, awaitsImage: false, detail: 'away' };
  const claim = { memoryMib: 1024, diskMib: 1024 };
  const room = { committed: 0, usedMib: 0, totalMib: 1, diskFreeMib: 1 };
  return { fit: true, ...named, driver: 'process', claim, slots, headroomPercent, ...room };
};
const change = fc.record({ at: fc.nat(30), slots: fc.nat(5), headroom: fc.nat(3) });

describe('a ranking of nodes that fit', () => {
  it('gives the best of all, whatever changes', () => {
    const judged = fc.array(fc.record({ slots: fc.nat(5), headroom: fc.nat(3) }), { maxLength: 20 });
    fc.assert(
      fc.property(judged, fc.array(change, { maxLength: 60 }), (first, changes) => {
        const now = first.map(({ slots, headroom }, index) => verdict(index, slots, headroom));
        const ranking = rankFit(now);
        const best = () => now.filter((each): each is FitNode => each.fit).toSorted(compareFit)[0];
        expect(ranking.best()).toBe(best());
        for (const { at, slots, headroom } of changes.filter(() => now.length > 0)) {
          const index = at % now.length;
          now[index] = verdict(index, slots, headroom);
          ranking.replace(index, now[index]);
          expect(ranking.best()).toBe(best());
          expect(ranking.verdicts).toEqual(now);
        }
      }),
      { numRuns: 500 },
    );
  });
});
