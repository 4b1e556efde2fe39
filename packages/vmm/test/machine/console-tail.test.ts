import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CONSOLE_TAIL_BYTES, ConsoleTail } from '../../src/machine/console-tail.ts';

const MIB = 1024 * 1024;
setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/** Bytes of buffers that something still holds on to. */
function heldBytes(): number {
  if (typeof collect === 'function') collect();
  return process.memoryUsage().arrayBuffers;
}

describe('the tail of a console', () => {
  it('keeps the end of any amount, in any pieces', () => {
    const tail = new ConsoleTail();
    for (let line = 0; line < 100_000; line += 1) tail.add(Buffer.from(`line ${line}\n`));
    expect(tail.lines(2)).toEqual(['line 99998', 'line 99999']);
    tail.add(Buffer.alloc(10 * CONSOLE_TAIL_BYTES, 'x'));
    expect(tail.lines(9)).toEqual(['x'.repeat(200)]);
  });

  it('is the last bytes that came, whatever their pieces', () => {
    const piece = fc.oneof(
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: CONSOLE_TAIL_BYTES - 2, max: CONSOLE_TAIL_BYTES + 2 }),
      fc.integer({ min: 0, max: 3 * CONSOLE_TAIL_BYTES }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (lengths) => {
        const tail = new ConsoleTail();
        const all = Buffer.from(
          Uint8Array.from({ length: lengths.reduce((sum, length) => sum + length, 0) }, (_, at) => (at * 31 + (at >> 8)) & 0xff),
        );
        let at = 0;
        for (const length of lengths) {
          tail.add(all.subarray(at, at + length));
          at += length;
        }
        return tail.text() === all.subarray(-CONSOLE_TAIL_BYTES).toString('latin1');
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['pieces of a mebibyte', 128, MIB, MIB],
    ['single bytes, each of a buffer of its own', 2000, 65_536, 1],
  ])('holds on to no more than its own size, of an endless console in %s', async (_, count, bufferBytes, bytes) => {
    const before = heldBytes();
    const tail = new ConsoleTail();
    for (let index = 0; index < count; index += 1) tail.add(Buffer.alloc(bufferBytes, 'x').subarray(0, bytes));
    // Memory of buffers is given back beside the collection, a little later.
    await expect.poll(() => heldBytes() - before).toBeLessThan(2 * MIB);
    expect(tail.text()).toBe('x'.repeat(Math.min(count * bytes, CONSOLE_TAIL_BYTES)));
  });

  it('holds nothing that a terminal acts on', () => {
    const tail = new ConsoleTail();
    tail.add(Buffer.from('\u001b]0;title\u0007\u001b[31mred\u009b2J\r\n\0plain\n'));
    expect(tail.lines(5).join('')).toMatch(/^[\x20-\x7e]*$/);
  });
});
