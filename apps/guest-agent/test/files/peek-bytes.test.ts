import { describe, expect, it } from 'vitest';
import { hasMoreThan } from '../../src/files/peek-bytes.ts';

async function* stream(...sizes: number[]): AsyncGenerator<Uint8Array> {
  for (const size of sizes) yield new Uint8Array(size).fill(size);
}

describe('hasMoreThan', () => {
  it.each([
    [[], 0, false],
    [[10], 10, false],
    [[4, 6, 1], 10, true],
    [[11, 20, 30], 10, true],
  ])('knows of pieces of %j whether they are more than %i, and gives all of them', async (sizes, limit, isMore) => {
    const peeked = await hasMoreThan(stream(...sizes), limit);
    expect(peeked.isMore).toBe(isMore);
    const lengths: number[] = [];
    for await (const part of peeked.bytes) lengths.push(part.length);
    expect(lengths).toEqual(sizes);
  });
});
