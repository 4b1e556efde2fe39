import { expect, it } from 'vitest';
import { Cut } from '../src/cut.ts';

it('a cut is told once to those who wait, at once to those who come late, and to nobody who left', () => {
  const cut = new Cut();
  const told: string[] = [];
  const gone = (): void => void told.push('gone');
  cut.join(() => void told.push('first'));
  cut.join(gone);
  cut.leave(gone);
  expect([cut.isMade, told]).toEqual([false, []]);
  cut.make();
  cut.make();
  cut.join(() => void told.push('late'));
  expect([cut.isMade, told]).toEqual([true, ['first', 'late']]);
});

it('a cut reaches the others when one of them leaves while it is told', () => {
  const cut = new Cut();
  const told: string[] = [];
  const second = (): void => void told.push('second');
  cut.join(() => {
    told.push('first');
    cut.leave(second);
  });
  cut.join(second);
  cut.join(() => void told.push('third'));
  cut.make();
  expect(told).toEqual(['first', 'third']);
});
