import { expect, it } from 'vitest';
import type { ArtifactDigest } from '../../src/index.ts';
import { planCollection } from '../../src/store/plan-collection.ts';

const A: ArtifactDigest = 'sha256:a';
const NOW = 1_000_000;
const GRACE = 1_000;

/** [what, in use, seen unused before, removed, waiting] */
const PASSES: readonly (readonly [
  string,
  readonly string[],
  readonly (readonly [string, number])[],
  readonly string[],
  readonly (readonly [string, number])[],
])[] = [
  ['is marked when it is first seen unused', [], [], [], [[A, NOW]]],
  ['waits out the grace', [], [[A, NOW - GRACE + 1]], [], [[A, NOW - GRACE + 1]]],
  ['goes when it was unused for the whole grace', [], [[A, NOW - GRACE]], [A], []],
  ['stays when it is used, and its mark is forgotten', [A], [[A, NOW - 10 * GRACE]], [], []],
  ['waits anew when the clock was set back', [], [[A, NOW + 1]], [], [[A, NOW]]],
];
it.each(PASSES)('an artifact %s', (_what, inUse, before, removed, waiting) => {
  const plan = planCollection([A], new Set(inUse), new Map(before), { nowMs: NOW, graceMs: GRACE });
  expect(plan.remove).toEqual(removed);
  expect([...plan.unusedSince]).toEqual(waiting);
});

it('forgets marks of artifacts that are gone', () => {
  expect(planCollection([], new Set(), new Map([[A, 1]]), { nowMs: NOW, graceMs: GRACE }).unusedSince.size).toBe(0);
});
