import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byteKey, putFileHeader, TAR_BLOCK_BYTES, TAR_END_BYTES, tarEnd, tarPadding, writeTarHeader } from '../../src/index.ts';

const text = (block: Uint8Array, from: number, to: number) => Buffer.from(block.subarray(from, to)).toString('latin1');
const bytes = (value: string) => new TextEncoder().encode(value);

describe('writeTarHeader', () => {
  it.each([
    ['file', '0000644', '0'],
    ['executable', '0000755', '0'],
    ['link', '0000777', '2'],
    ['directory', '0000755', '5'],
  ] as const)('writes a %s with one fixed mode, no owner and no time', (kind, mode, flag) => {
    const block = writeTarHeader({ path: bytes('a'), kind, size: 0 });
    expect(block.length).toBe(512);
    expect(text(block, 100, 148)).toBe(`${mode}\x000000000\x000000000\x0000000000000\x0000000000000\0`);
    expect(text(block, 156, 157)).toBe(flag);
  });

  it('needs no extension for 100 ASCII bytes and one for 101', () => {
    expect(writeTarHeader({ path: bytes('a'.repeat(100)), kind: 'file', size: 0 }).length).toBe(512);
    expect(writeTarHeader({ path: bytes('a'.repeat(101)), kind: 'file', size: 0 }).length).toBe(1536);
  });

  it('states the length of an extension record with its own digits counted', () => {
    for (const length of [90, 91, 92, 93, 94, 101, 986, 987, 988, 989, 990, 991, 992]) {
      const header = writeTarHeader({ path: bytes('é'.padEnd(length - 1, 'a')), kind: 'file', size: 0 });
      const record = /^(\d+) path=[^\n]*\n/.exec(Buffer.from(header.subarray(512)).toString('latin1'));
      expect(Number(record?.[1])).toBe(record?.[0].length);
    }
  });

  it('writes a size of 8 GiB in an extension and one byte less in the field', () => {
    expect(text(writeTarHeader({ path: bytes('a'), kind: 'file', size: 8 * 1024 ** 3 - 1 }), 124, 136)).toBe('77777777777\0');
    const header = writeTarHeader({ path: bytes('a'), kind: 'file', size: 8 * 1024 ** 3 });
    expect(text(header, 512, 532)).toBe('19 size=8589934592\n\0');
  });

  it('pads to blocks and ends with two', () => {
    expect([0, 1, 511, 512, 513].map((size) => tarPadding(size).length)).toEqual([0, 511, 1, 0, 511]);
    expect(tarEnd()).toEqual(new Uint8Array(TAR_END_BYTES));
  });
});

describe('putFileHeader', () => {
  it('puts what writeTarHeader writes, or nothing that counts where an extension is needed', () => {
    const name = fc.oneof(
      fc.string({ minLength: 1, maxLength: 101, unit: 'grapheme-ascii' }),
      fc.string({ minLength: 1, maxLength: 40, unit: 'binary' }),
    );
    const size = fc.oneof(fc.nat(), fc.constantFrom(8 * 1024 ** 3 - 1, 8 * 1024 ** 3));
    fc.assert(
      fc.property(name, fc.constantFrom('file', 'executable'), size, fc.nat({ max: 3 }), (path, kind, bytesOfFile, place) => {
        const written = writeTarHeader({ path: bytes(path), kind, size: bytesOfFile });
        const target = new Uint8Array(5 * TAR_BLOCK_BYTES).fill(0xee);
        const at = place * TAR_BLOCK_BYTES;
        const isPut = putFileHeader(target, at, { key: byteKey(bytes(path)), kind, size: bytesOfFile });
        expect(isPut).toBe(written.length === TAR_BLOCK_BYTES);
        if (isPut) expect(target.subarray(at, at + TAR_BLOCK_BYTES)).toEqual(written);
        expect(target.subarray(at + TAR_BLOCK_BYTES).every((byte) => byte === 0xee)).toBe(true);
      }),
    );
  });
});
