import { CodedError } from '@firecrew/base';

/** Where a part of a program lies in its file and in memory. */
export interface ElfSegment {
  readonly type: number;
  /** Permissions: 1 execute, 2 write, 4 read. */
  readonly flags: number;
  readonly offset: number;
  /** Kernels lie beyond what a number can count. */
  readonly address: bigint;
  readonly fileBytes: number;
  readonly memoryBytes: number;
  /** Where its own header lies in the file. */
  readonly headerOffset: number;
}

/** A named part of an object file. */
export interface ElfSection {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  /** False for one that takes memory alone. */
  readonly inFile: boolean;
}

/** What is read of an ELF file of 64 bits, little endian. */
export interface Elf {
  /** Processor as ELF numbers it, see {@link ELF_MACHINES}. */
  readonly machine: number;
  readonly segments: readonly ElfSegment[];
  readonly sections: readonly ElfSection[];
}

/** Numbers of processors. */
export const ELF_MACHINES = { amd64: 62, arm64: 183 } as const;
export const SEGMENT = { load: 1, dynamic: 2, interpreter: 3 } as const;

const HEADER_BYTES = 64;
const SEGMENT_BYTES = 56;
const SECTION_BYTES = 64;
const NO_BITS = 8;
const MAX_SEGMENTS = 128;
const MAX_SECTIONS = 65_535;

/** Whether the bytes begin as every ELF file does. */
export function isElf(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && bytes[0] === 0x7f && bytes[1] === 0x45 && bytes[2] === 0x4c && bytes[3] === 0x46;
}

/** Reads the headers. Throws `elf_malformed` for another class or byte order, and for anything that points out of the file. */
export function readElf(bytes: Buffer): Elf {
  if (!isElf(bytes) || bytes.length < HEADER_BYTES) throw malformedElf('it is no ELF file');
  if (bytes[4] !== 2 || bytes[5] !== 1) throw malformedElf('it is not of 64 bits and little endian');
  return { machine: bytes.readUInt16LE(18), segments: readSegments(bytes), sections: readSections(bytes) };
}

/** The text of NUL-terminated bytes at an offset. Throws `elf_malformed`. */
export function textAt(bytes: Buffer, offset: number, end: number = bytes.length): string {
  const nul = offset >= 0 && offset < end ? bytes.indexOf(0, offset) : -1;
  if (nul === -1 || nul >= end) throw malformedElf('a text has no end');
  return bytes.toString('latin1', offset, nul);
}

/** Throws `elf_malformed`. */
export function malformedElf(what: string): CodedError {
  return new CodedError('elf_malformed', `the program cannot be used: ${what}`, {
    action: 'Take another build of it; this one is damaged or made for another system.',
  });
}

function readSegments(bytes: Buffer): ElfSegment[] {
  const [start, size, count] = [offsetAt(bytes, 32), bytes.readUInt16LE(54), bytes.readUInt16LE(56)];
  if (count === 0) return [];
  if (size !== SEGMENT_BYTES || count > MAX_SEGMENTS) throw malformedElf('its program headers are of another form');
  checkRange(bytes, start, count * size, 'its program headers');
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    const segment = {
      type: bytes.readUInt32LE(at),
      flags: bytes.readUInt32LE(at + 4),
      offset: offsetAt(bytes, at + 8),
      address: bytes.readBigUInt64LE(at + 16),
      fileBytes: offsetAt(bytes, at + 32),
      memoryBytes: offsetAt(bytes, at + 40),
      headerOffset: at,
    };
    checkRange(bytes, segment.offset, segment.fileBytes, 'a segment');
    return segment;
  });
}

function readSections(bytes: Buffer): ElfSection[] {
  const [start, size, count] = [offsetAt(bytes, 40), bytes.readUInt16LE(58), bytes.readUInt16LE(60)];
  if (start === 0 || count === 0) return [];
  if (size !== SECTION_BYTES || count > MAX_SECTIONS) throw malformedElf('its section headers are of another form');
  checkRange(bytes, start, count * size, 'its section headers');
  const names = bytes.readUInt16LE(62);
  if (names >= count) throw malformedElf('its sections have no names');
  const raw = Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    const inFile = bytes.readUInt32LE(at + 4) !== NO_BITS;
    const section = { name: bytes.readUInt32LE(at), offset: offsetAt(bytes, at + 24), bytes: offsetAt(bytes, at + 32), inFile };
    if (inFile) checkRange(bytes, section.offset, section.bytes, 'a section');
    return section;
  });
  const table = raw[names];
  if (table === undefined || !table.inFile) throw malformedElf('its sections have no names');
  return raw.map(({ name, ...rest }) => ({ ...rest, name: textAt(bytes, table.offset + name, table.offset + table.bytes) }));
}

function offsetAt(bytes: Buffer, at: number): number {
  const value = bytes.readBigUInt64LE(at);
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw malformedElf('an offset is past every file');
  return Number(value);
}

function checkRange(bytes: Buffer, offset: number, length: number, what: string): void {
  if (offset + length > bytes.length) throw malformedElf(`${what} lies behind its end`);
}
