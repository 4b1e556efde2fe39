import { describe, expect, it } from 'vitest';
import { planTransfer } from '../../src/fetch/plan-transfer.ts';

const file = (name: string, sizeBytes: number) => ({ name, sizeBytes, sha256: '0'.repeat(64) });
const FILES = [file('a', 100), file('b', 50), file('empty', 0)];
const ROOM = { freeBytes: 1_000, reserveBytes: 0 };

describe('the plan of a transfer', () => {
  it.each([
    [
      'nothing is kept',
      {},
      [
        ['a', 0],
        ['b', 0],
        ['empty', 0],
      ],
      150,
      0,
    ],
    [
      'a file is kept in part',
      { a: 30 },
      [
        ['a', 30],
        ['b', 0],
        ['empty', 0],
      ],
      120,
      30,
    ],
    [
      'a file is kept whole',
      { a: 100, b: 1 },
      [
        ['b', 1],
        ['empty', 0],
      ],
      49,
      101,
    ],
    [
      'a file is kept with too many bytes',
      { a: 101 },
      [
        ['a', 0],
        ['b', 0],
        ['empty', 0],
      ],
      150,
      0,
    ],
    ['all is kept', { a: 100, b: 50, empty: 0 }, [], 0, 150],
    [
      'something else is kept too',
      { c: 7 },
      [
        ['a', 0],
        ['b', 0],
        ['empty', 0],
      ],
      150,
      0,
    ],
  ])('where %s', (_what, kept, steps, bytes, keptBytes) => {
    const plan = planTransfer(FILES, new Map(Object.entries(kept)), ROOM);
    expect(plan).toMatchObject({ verdict: 'transfer', bytes, keptBytes });
    expect(plan.verdict === 'transfer' && plan.steps.map((step) => [step.file.name, step.from])).toEqual(steps);
  });

  it.each([
    ['just enough', { freeBytes: 160, reserveBytes: 10 }, {}, { verdict: 'transfer' }],
    ['one byte too little', { freeBytes: 159, reserveBytes: 10 }, {}, { verdict: 'no_room', bytes: 150, lackingBytes: 1 }],
    ['enough for what is left', { freeBytes: 60, reserveBytes: 10 }, { a: 100 }, { verdict: 'transfer' }],
    ['none, and nothing left to come', { freeBytes: 0, reserveBytes: 10 }, { a: 100, b: 50 }, { verdict: 'transfer' }],
  ])('looks at the room: %s', (_what, room, kept, expected) => {
    expect(planTransfer(FILES, new Map(Object.entries(kept)), room)).toMatchObject(expected);
  });
});
