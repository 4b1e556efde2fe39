import { CodedError } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { readElf, SEGMENT } from '../../src/elf/read-elf.ts';
import { readInterpreter, setInterpreter, setLibraryFolder } from '../../src/elf/redirect-elf.ts';
import { stripElf } from '../../src/elf/strip-elf.ts';
import { BASE, makeElf, type TestSegment } from '../support/make-elf.ts';

const LOADER = '/lib64/ld-linux-x86-64.so.2';

function dynamic(...entries: readonly (readonly [number, number])[]): Buffer {
  const bytes = Buffer.alloc(entries.length * 16);
  for (const [index, [tag, value]] of entries.entries()) {
    bytes.writeBigUInt64LE(BigInt(tag), index * 16);
    bytes.writeBigUInt64LE(BigInt(value), index * 16 + 8);
  }
  return bytes;
}

const STRINGS = BASE + 0x40;
const interpreter: TestSegment = { type: SEGMENT.interpreter, content: Buffer.from(`${LOADER}\0`) };
const text = (gap: number): TestSegment => ({ type: SEGMENT.load, content: Buffer.alloc(64, 1), flags: 5, gap });
const data: TestSegment = { type: SEGMENT.load, content: Buffer.alloc(64, 2), flags: 6 };
const spare = dynamic([5, STRINGS], [1, 1], [0, 0], [0, 0]);
const program = (own: Buffer = spare, gap = 64): Buffer =>
  makeElf({
    segments: [interpreter, text(gap), data, { type: SEGMENT.dynamic, content: own }],
    sections: [{ name: '.debug', content: Buffer.alloc(1_000, 3) }],
  });

/** The folder that the dynamic section names, found as a loader finds it. */
function libraryFolder(bytes: Buffer): string[] {
  const { segments } = readElf(bytes);
  const at = segments.find(({ type }) => type === SEGMENT.dynamic)?.offset ?? 0;
  const found: string[] = [];
  for (let entry = at; bytes.readBigUInt64LE(entry) !== 0n; entry += 16) {
    if (bytes.readBigUInt64LE(entry) !== 15n) continue;
    const address = BigInt(STRINGS) + bytes.readBigUInt64LE(entry + 8);
    const segment = segments.find(
      (one) => one.type === SEGMENT.load && address >= one.address && address < one.address + BigInt(one.memoryBytes),
    );
    const offset = (segment?.offset ?? 0) + Number(address - (segment?.address ?? 0n));
    found.push(bytes.toString('latin1', offset, bytes.indexOf(0, offset)));
  }
  return found;
}

describe('a program', () => {
  it('gets another loader in the place of the old one', () => {
    expect(readInterpreter(program())).toBe(LOADER);
    const moved = setInterpreter(program(), '/opt/firecrew/lib/ld.so');
    expect(readInterpreter(moved)).toBe('/opt/firecrew/lib/ld.so');
    expect(moved).toHaveLength(program().length);
    expect(readInterpreter(setInterpreter(program(), LOADER))).toBe(LOADER);
  });

  it('names a folder for its libraries, in a spare entry and the zeros between segments', () => {
    const moved = setLibraryFolder(program(), '/opt/firecrew/lib');
    expect(libraryFolder(moved)).toEqual(['/opt/firecrew/lib']);
    expect(moved).toHaveLength(program().length);
    const [before, after] = [readElf(program()).segments, readElf(moved).segments];
    expect(after[1]?.fileBytes).toBe((before[1]?.fileBytes ?? 0) + '/opt/firecrew/lib\0'.length);
    expect(after[1]?.memoryBytes).toBe(after[1]?.fileBytes);
    expect(after.filter((_, index) => index !== 1)).toEqual(before.filter((_, index) => index !== 1));
  });

  it('that names a folder already names the new one in its place', () => {
    const moved = setLibraryFolder(program(dynamic([29, 7], [5, STRINGS], [0, 0])), '/opt/firecrew/lib');
    expect(libraryFolder(moved)).toEqual(['/opt/firecrew/lib']);
  });

  it('is cut behind the last part that is loaded', () => {
    const stripped = stripElf(program());
    expect(stripped.length).toBeLessThan(program().length - 1_000);
    expect(readElf(stripped).sections).toEqual([]);
    expect(readElf(stripped).segments).toEqual(readElf(program()).segments);
    expect(libraryFolder(setLibraryFolder(stripped, '/x'))).toEqual(['/x']);
  });

  it('that is static has no loader', () => {
    expect(readInterpreter(makeElf({ segments: [data] }))).toBeUndefined();
  });

  const folder = (bytes: Buffer) => (): Buffer => setLibraryFolder(bytes, '/opt/firecrew/lib');
  /** [what, what is done] */
  const REFUSED: readonly (readonly [string, () => Buffer])[] = [
    ['a loader path that is too long', () => setInterpreter(program(), `${LOADER}x`)],
    ['a loader for a static program', () => setInterpreter(makeElf({ segments: [data] }), '/x')],
    [
      'a loader path without an end',
      () => Buffer.from(readInterpreter(makeElf({ segments: [{ type: SEGMENT.interpreter, content: Buffer.from('x') }, data] })) ?? ''),
    ],
    ['libraries of a static program', folder(makeElf({ segments: [text(64), data] }))],
    ['no room between segments', folder(program(spare, 10))],
    [
      'no zeros between segments',
      folder(Buffer.from(program().map((byte, at, all) => (byte === 0 && at > 1 && all[at - 1] === 1 && all[at - 2] === 1 ? 9 : byte)))),
    ],
    ['no spare entry', folder(program(dynamic([5, STRINGS], [0, 0])))],
    ['a dynamic section without an end', folder(program(dynamic([5, STRINGS], [1, 1])))],
    ['no table of texts', folder(program(dynamic([1, 1], [0, 0], [0, 0])))],
    ['two folders already', folder(program(dynamic([15, 1], [29, 1], [5, STRINGS], [0, 0], [0, 0])))],
    ['nothing that is loaded', () => stripElf(makeElf())],
  ];
  it.each(REFUSED)('with %s is refused', (_what, act) => {
    expect(act).toThrow(CodedError);
  });
});
