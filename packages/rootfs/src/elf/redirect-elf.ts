import { type Elf, type ElfSegment, malformedElf, readElf, SEGMENT, textAt } from './read-elf.ts';

const TAG = { end: 0n, needed: 1n, stringTable: 5n, rpath: 15n, runpath: 29n } as const;
const ENTRY_BYTES = 16;
const WRITABLE = 2;

/** The program that loads this one and its libraries; undefined for a static one. Throws `elf_malformed`. */
export function readInterpreter(bytes: Buffer): string | undefined {
  const segment = readElf(bytes).segments.find(({ type }) => type === SEGMENT.interpreter);
  return segment === undefined ? undefined : textAt(bytes, segment.offset, segment.offset + segment.fileBytes);
}

/** A copy that is loaded by the program at `path`. It is written over the old path, so it must not be longer. Throws `elf_malformed`. */
export function setInterpreter(bytes: Buffer, path: string): Buffer {
  const segment = readElf(bytes).segments.find(({ type }) => type === SEGMENT.interpreter);
  if (segment === undefined) throw malformedElf('it is static: nothing loads it');
  const text = Buffer.from(`${path}\0`, 'latin1');
  if (text.length > segment.fileBytes) throw malformedElf(`it has room for a loader path of ${segment.fileBytes - 1} bytes`);
  const copy = Buffer.from(bytes);
  copy.fill(0, segment.offset, segment.offset + segment.fileBytes);
  text.copy(copy, segment.offset);
  return copy;
}

/**
 * A copy that looks for its libraries, and for those of its libraries, in `folder` first, with no variable of the environment: a `DT_RPATH` in
 * a spare entry of the dynamic section. The text goes into the zeros between two segments. Throws `elf_malformed` where there is no room.
 */
export function setLibraryFolder(bytes: Buffer, folder: string): Buffer {
  const elf = readElf(bytes);
  const dynamic = elf.segments.find(({ type }) => type === SEGMENT.dynamic);
  if (dynamic === undefined) throw malformedElf('it is static: it has no libraries');
  const copy = Buffer.from(bytes);
  const text = Buffer.from(`${folder}\0`, 'latin1');
  const segment = segmentWithRoom(elf, bytes, text.length);
  const offset = segment.offset + segment.fileBytes;
  text.copy(copy, offset);
  const grown = BigInt(segment.fileBytes + text.length);
  copy.writeBigUInt64LE(grown, segment.headerOffset + 32);
  copy.writeBigUInt64LE(grown, segment.headerOffset + 40);
  const entries = dynamicEntries(bytes, dynamic);
  const strings = entries.find(({ tag }) => tag === TAG.stringTable)?.value;
  if (strings === undefined) throw malformedElf('it has no table of texts');
  const at = slotFor(entries, dynamic);
  copy.writeBigUInt64LE(TAG.rpath, at);
  // Texts are counted from the table of texts, and may lie behind it.
  copy.writeBigUInt64LE(segment.address + BigInt(segment.fileBytes) - strings, at + 8);
  return copy;
}

interface DynamicEntry {
  readonly tag: bigint;
  readonly value: bigint;
  readonly offset: number;
}

function dynamicEntries(bytes: Buffer, { offset, fileBytes }: ElfSegment): readonly DynamicEntry[] {
  const entries: DynamicEntry[] = [];
  for (let at = offset; at + ENTRY_BYTES <= offset + fileBytes; at += ENTRY_BYTES) {
    const entry = { tag: bytes.readBigUInt64LE(at), value: bytes.readBigUInt64LE(at + 8), offset: at };
    entries.push(entry);
    if (entry.tag === TAG.end) return entries;
  }
  throw malformedElf('its dynamic section has no end');
}

/** The entry that is replaced: one that says where libraries are, or the end, when another end follows it. */
function slotFor(entries: readonly DynamicEntry[], { offset, fileBytes }: ElfSegment): number {
  const said = entries.filter(({ tag }) => tag === TAG.rpath || tag === TAG.runpath);
  const [first] = said;
  if (said.length > 1) throw malformedElf('it names two places for its libraries');
  if (first !== undefined) return first.offset;
  const end = entries.at(-1);
  // The linker leaves zeros behind the end, which are ends as well.
  if (end === undefined || end.offset + 2 * ENTRY_BYTES > offset + fileBytes) throw malformedElf('its dynamic section has no room');
  return end.offset;
}

/** A segment that is only read, with zeros behind it in the file and nothing behind it in memory. */
function segmentWithRoom({ segments }: Elf, bytes: Buffer, length: number): ElfSegment {
  const loaded = segments.filter(({ type }) => type === SEGMENT.load);
  for (const segment of loaded) {
    if ((segment.flags & WRITABLE) !== 0 || segment.fileBytes !== segment.memoryBytes) continue;
    const from = segment.offset + segment.fileBytes;
    const memoryEnd = segment.address + BigInt(segment.fileBytes + length);
    const isFree = loaded.every(
      (other) =>
        other === segment ||
        ((other.offset + other.fileBytes <= from || other.offset >= from + length) &&
          (other.address + BigInt(other.memoryBytes) <= segment.address || other.address >= memoryEnd)),
    );
    const room = bytes.subarray(from, from + length);
    if (isFree && room.length === length && room.every((byte) => byte === 0)) return segment;
  }
  throw malformedElf(`no segment of it has room for ${length} bytes`);
}
