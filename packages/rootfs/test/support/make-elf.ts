/** A section of a test program. */
export interface TestSection {
  readonly name: string;
  readonly content: Buffer;
}

/** A segment of a test program; its content follows the headers. */
export interface TestSegment {
  readonly type: number;
  readonly content: Buffer;
  readonly flags?: number;
  /** Bytes of zeros behind it that belong to nothing. */
  readonly gap?: number;
}

/** Where the first segment of {@link makeElf} is loaded. */
export const BASE = 0x400000;

/** A small ELF file of 64 bits: segments one behind another, then sections. */
export function makeElf(options: { segments?: readonly TestSegment[]; sections?: readonly TestSection[]; machine?: number } = {}): Buffer {
  const { segments = [], sections = [], machine = 62 } = options;
  const body: Buffer[] = [];
  let at = 64 + segments.length * 56;
  const add = (content: Buffer): number => {
    body.push(content);
    at += content.length;
    return at - content.length;
  };
  const programHeaders = segments.map(({ type, content, flags = 4, gap = 0 }) => {
    const offset = add(content);
    add(Buffer.alloc(gap));
    const header = Buffer.alloc(56);
    header.writeUInt32LE(type, 0);
    header.writeUInt32LE(flags, 4);
    header.writeBigUInt64LE(BigInt(offset), 8);
    header.writeBigUInt64LE(BigInt(BASE + offset), 16);
    header.writeBigUInt64LE(BigInt(content.length), 32);
    header.writeBigUInt64LE(BigInt(content.length), 40);
    return header;
  });
  const names = Buffer.from(`\0${sections.map(({ name }) => `${name}\0`).join('')}.shstrtab\0`);
  const placed = sections.map(({ name, content }) => ({ name, offset: add(content), bytes: content.length }));
  const all = [{ name: '', offset: 0, bytes: 0 }, ...placed, { name: '.shstrtab', offset: add(names), bytes: names.length }];
  const sectionStart = at;
  const sectionHeaders = all.map(({ name, offset, bytes }, index) => {
    const header = Buffer.alloc(64);
    header.writeUInt32LE(names.indexOf(`${name}\0`, 0, 'latin1'), 0);
    header.writeUInt32LE(index === 0 ? 0 : 1, 4);
    header.writeBigUInt64LE(BigInt(offset), 24);
    header.writeBigUInt64LE(BigInt(bytes), 32);
    return header;
  });
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(machine, 18);
  header.writeBigUInt64LE(64n, 32);
  header.writeBigUInt64LE(BigInt(sectionStart), 40);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(segments.length, 56);
  header.writeUInt16LE(64, 58);
  header.writeUInt16LE(all.length, 60);
  header.writeUInt16LE(all.length - 1, 62);
  return Buffer.concat([header, ...programHeaders, ...body, ...sectionHeaders]);
}

/** A module of a kernel with its own word on what it needs. */
export function makeModule(name: string, depends: readonly string[] = []): Buffer {
  const info = `license=GPL\0name=${name}\0depends=${depends.join(',')}\0`;
  return makeElf({ sections: [{ name: '.modinfo', content: Buffer.from(info) }] });
}
