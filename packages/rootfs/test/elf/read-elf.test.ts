import { readFileSync } from 'node:fs';
import { CodedError } from '@firecrew/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isElf, readElf, SEGMENT } from '../../src/elf/read-elf.ts';
import { readModuleInfo } from '../../src/kernel/module-info.ts';
import { makeElf, makeModule } from '../support/make-elf.ts';

describe('an ELF file', () => {
  it('gives its segments and named sections', () => {
    const bytes = makeElf({
      segments: [{ type: SEGMENT.load, content: Buffer.from('code'), flags: 5 }],
      sections: [{ name: '.note', content: Buffer.from('text') }],
    });
    const { machine, segments, sections } = readElf(bytes);
    expect(machine).toBe(62);
    expect(segments).toMatchObject([{ type: 1, flags: 5, fileBytes: 4 }]);
    const note = sections.find(({ name }) => name === '.note');
    expect(bytes.toString('latin1', note?.offset, (note?.offset ?? 0) + 4)).toBe('text');
  });

  it('of this very process is read', () => {
    const bytes = readFileSync(process.execPath);
    expect(readElf(bytes).segments.some(({ type }) => type === SEGMENT.load)).toBe(true);
  });

  const plain = makeElf({ segments: [{ type: 1, content: Buffer.from('x') }], sections: [{ name: '.a', content: Buffer.from('y') }] });
  const edit = (change: (bytes: Buffer) => unknown): Buffer => {
    const bytes = Buffer.from(plain);
    change(bytes);
    return bytes;
  };
  /** [what, the bytes] */
  const REFUSED: readonly (readonly [string, Buffer])[] = [
    ['nothing', Buffer.alloc(0)],
    ['a header that is cut', plain.subarray(0, 40)],
    ['32 bits', edit((bytes) => bytes.writeUInt8(1, 4))],
    ['the other byte order', edit((bytes) => bytes.writeUInt8(2, 5))],
    ['program headers behind its end', edit((bytes) => bytes.writeBigUInt64LE(0xffffn, 32))],
    ['program headers past every file', edit((bytes) => bytes.writeBigUInt64LE(0xffff_ffff_ffff_ffffn, 32))],
    ['too many program headers', edit((bytes) => bytes.writeUInt16LE(0xffff, 56))],
    ['program headers of another size', edit((bytes) => bytes.writeUInt16LE(32, 54))],
    ['a segment behind its end', edit((bytes) => bytes.writeBigUInt64LE(0xfffffn, 64 + 32))],
    ['section headers behind its end', edit((bytes) => bytes.writeUInt16LE(0xfff, 60))],
    ['sections without names', edit((bytes) => bytes.writeUInt16LE(40, 62))],
  ];
  it.each(REFUSED)('with %s is refused', (_what, bytes) => {
    expect(() => readElf(bytes)).toThrow(CodedError);
  });

  it('of any bytes is read or refused', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(plain.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }), (changes) => {
        const bytes = Buffer.from(plain);
        for (const [at, value] of changes) bytes[at] = value;
        try {
          readElf(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(CodedError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('is told from other files by its first bytes', () => {
    expect([isElf(plain), isElf(Buffer.from('#!/bin/sh'))]).toEqual([true, false]);
  });
});

describe('a module', () => {
  it('says its name and what it needs', () => {
    expect(readModuleInfo(makeModule('virtio_blk', ['virtio', 'virtio-ring']))).toEqual({
      name: 'virtio_blk',
      depends: ['virtio', 'virtio_ring'],
    });
    expect(readModuleInfo(makeModule('overlay')).depends).toEqual([]);
  });

  it('without its own word is refused', () => {
    expect(() => readModuleInfo(plainElf())).toThrow(CodedError);
    expect(() => readModuleInfo(makeElf({ sections: [{ name: '.modinfo', content: Buffer.from('license=GPL\0') }] }))).toThrow('no name');
  });
});

function plainElf(): Buffer {
  return makeElf({ sections: [{ name: '.text', content: Buffer.from('x') }] });
}
