import { CodedError } from '@firecrew/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unpackLz4 } from '../../src/kernel/unpack-lz4.ts';
import { storeLz4 } from '../support/make-kernel.ts';
import { itWith, runTool } from '../support/tools.ts';

const block = (...bytes: number[]): Buffer => {
  const head = Buffer.from('02214c1800000000', 'hex');
  head.writeUInt32LE(bytes.length, 4);
  return Buffer.concat([head, Buffer.from(bytes)]);
};

describe('LZ4 of the legacy form', () => {
  it('repeats what a match reaches back to, also into itself', () => {
    // Two literals "ab", then 6 bytes from a distance of 2, then one literal.
    expect(unpackLz4(block(0x22, 0x61, 0x62, 2, 0, 0x10, 0x63), 9).toString()).toBe('abababab' + 'c');
  });

  /** [what, the bytes] */
  const REFUSED: readonly (readonly [string, Buffer])[] = [
    ['nothing', Buffer.alloc(0)],
    ['another magic number', Buffer.from('04224d1800000000', 'hex')],
    ['a cut length', Buffer.from('02214c180100', 'hex')],
    ['a block behind the end', Buffer.from('02214c18ffffff7f00', 'hex')],
    ['a distance of nothing', block(0x22, 0x61, 0x62, 0, 0, 0x10, 0x63)],
    ['a distance before the start', block(0x22, 0x61, 0x62, 3, 0, 0x10, 0x63)],
    ['a match behind the end', block(0x2f, 0x61, 0x62, 2, 0, 255, 255, 0, 0x10, 0x63)],
    ['literals behind the end', block(0xf0, 255, 255, 0, 1)],
    ['a length without an end', block(0xf0, 255, 255)],
    ['a block that ends in a match', block(0x22, 0x61, 0x62, 2, 0)],
    ['too few bytes', block(0x10, 0x61)],
  ];
  it.each(REFUSED)('refuses %s', (_what, bytes) => {
    expect(() => unpackLz4(bytes, 9)).toThrow(CodedError);
  });

  it('ends with exactly the bytes or a refusal for any change', () => {
    const bytes = storeLz4(Buffer.from('some text that is stored as it is, without a match'));
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, value) => {
        const changed = Buffer.from(bytes);
        changed[at] = value;
        try {
          expect(unpackLz4(changed, 50)).toHaveLength(50);
        } catch (error) {
          expect(error).toBeInstanceOf(CodedError);
        }
      }),
    );
  });

  itWith('lz4')('gives back what the tool for it packed, over many blocks', () => {
    let state = 1;
    const original = Buffer.alloc(20 * 1024 * 1024);
    for (let at = 0; at < original.length; at += 1) {
      state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
      original[at] = at % 7 < 4 ? (state >> 16) & 0x0f : (at >> 9) & 0xff;
    }
    const packed = runTool('lz4', ['-l', '-1', '-c', '-'], { input: original });
    expect(unpackLz4(packed, original.length).equals(original)).toBe(true);
  });
});
