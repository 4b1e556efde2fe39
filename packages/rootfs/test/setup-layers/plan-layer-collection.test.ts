import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KeptLayer, planLayerCollection } from '../../src/setup-layers/plan-layer-collection.ts';

const NOW = 1_000_000;
const layer = (key: string, bytes: number, ageMs: number, inUse = false): KeptLayer => ({ key, bytes, lastUsedMs: NOW - ageMs, inUse });
const BOUNDS = { maxBytes: 100, unusedMs: 1000 };

describe('which layers go', () => {
  it.each<[string, readonly KeptLayer[], number, readonly string[]]>([
    ['none where all is within the bounds', [layer('a', 50, 1000), layer('b', 50, 0)], 0, []],
    ['one that was not used for longer than it may', [layer('a', 1, 1001), layer('b', 1, 1000)], 0, ['a']],
    ['none that is in use, however old', [layer('a', 1, 5000, true)], 0, []],
    ['the least recently used ones until the rest fits', [layer('a', 40, 10), layer('b', 40, 30), layer('c', 40, 20)], 0, ['b']],
    ['as many as what comes needs', [layer('a', 40, 10), layer('b', 40, 30)], 70, ['b', 'a']],
    ['none for what fits exactly', [layer('a', 40, 10)], 60, []],
    ['not those in use, whose bytes count all the same', [layer('a', 90, 30, true), layer('b', 20, 10)], 0, ['b']],
    ['all others where those in use are too much alone', [layer('a', 200, 0, true), layer('b', 1, 0)], 0, ['b']],
    ['by the key where two were used at once', [layer('b', 60, 5), layer('a', 60, 5)], 0, ['a']],
    ['none for a time in the future', [layer('a', 1, -90_000)], 0, []],
    ['one of the future as the last', [layer('a', 60, -90_000), layer('b', 60, 1)], 0, ['b']],
    ['nothing of nothing', [], 1000, []],
  ])('%s', (_what, layers, incomingBytes, going) => {
    expect(planLayerCollection(layers, BOUNDS, { nowMs: NOW, incomingBytes })).toEqual(going);
  });

  const layers = fc.uniqueArray(
    fc.record({
      key: fc.stringMatching(/^[a-f]{1,3}$/),
      bytes: fc.nat(60),
      lastUsedMs: fc.integer({ min: NOW - 3000, max: NOW + 100 }),
      inUse: fc.boolean(),
    }),
    { selector: ({ key }) => key },
  );

  it('never takes one that is in use, and takes no more than it must', () => {
    fc.assert(
      fc.property(layers, fc.nat(100), (kept, incomingBytes) => {
        const going = planLayerCollection(kept, BOUNDS, { nowMs: NOW, incomingBytes });
        const staying = kept.filter(({ key }) => !going.includes(key));
        const gone = kept.filter(({ key }) => going.includes(key));
        expect(gone.some(({ inUse }) => inUse)).toBe(false);
        const bytes = staying.reduce((sum, one) => sum + one.bytes, incomingBytes);
        if (bytes > BOUNDS.maxBytes) expect(staying.every(({ inUse }) => inUse)).toBe(true);
        expect(staying.every((one) => one.inUse || NOW - one.lastUsedMs <= BOUNDS.unusedMs)).toBe(true);
        // The last that went for its bytes was needed for them.
        const last = gone.find(({ key }) => key === going.at(-1));
        if (last !== undefined && NOW - last.lastUsedMs <= BOUNDS.unusedMs) expect(bytes + last.bytes).toBeGreaterThan(BOUNDS.maxBytes);
      }),
    );
  });
});
