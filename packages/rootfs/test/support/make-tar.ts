import { writePaxRecord } from '../../src/tar/pax-records.ts';
import type { ByteSource } from '../../src/tar/scan-tar.ts';

/** One entry as it is to be written, right or wrong. */
export interface RawEntry {
  readonly name: string;
  /** Type flag; default `0`. */
  readonly type?: string;
  readonly content?: string | Buffer;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly mtime?: number;
  readonly link?: string;
  readonly major?: number;
  readonly minor?: number;
  readonly magic?: string;
  /** Stated in place of the length of the content. */
  readonly size?: number;
  /** Raw bytes in place of the fields at these offsets. */
  readonly raw?: Readonly<Record<number, Buffer>>;
  /** Records of a pax header in front of it. */
  readonly pax?: Readonly<Record<string, string | Buffer>>;
}

/** An archive of these entries with its end mark. */
export function makeTar(entries: readonly RawEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(entryBlocks), Buffer.alloc(1024)]);
}

/** The blocks of one entry. */
export function entryBlocks(entry: RawEntry): Buffer[] {
  const content = Buffer.from(entry.content ?? '');
  const blocks = [headerBlock(entry, content.length), content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  if (entry.pax === undefined) return blocks;
  const records = Buffer.concat(Object.entries(entry.pax).map(([key, value]) => writePaxRecord(key, Buffer.from(value))));
  return [...entryBlocks({ name: 'pax', type: 'x', content: records }), ...blocks];
}

function headerBlock(entry: RawEntry, length: number): Buffer {
  const block = Buffer.alloc(512);
  const octal = (at: number, digits: number, value: number): number => block.write(value.toString(8).padStart(digits, '0'), at, 'latin1');
  block.write(entry.name, 0, 100, 'latin1');
  octal(100, 7, entry.mode ?? 0o644);
  octal(108, 7, entry.uid ?? 0);
  octal(116, 7, entry.gid ?? 0);
  octal(124, 11, entry.size ?? length);
  octal(136, 11, entry.mtime ?? 1_600_000_000);
  block.write(entry.type ?? '0', 156, 'latin1');
  block.write(entry.link ?? '', 157, 100, 'latin1');
  block.write(entry.magic ?? 'ustar\x0000', 257, 'latin1');
  octal(329, 7, entry.major ?? 0);
  octal(337, 7, entry.minor ?? 0);
  for (const [at, bytes] of Object.entries(entry.raw ?? {})) bytes.copy(block, Number(at));
  block.fill(0x20, 148, 156);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Bytes in memory as a source. */
export function sourceOf(bytes: Buffer): ByteSource {
  return {
    size: bytes.length,
    read: async (offset, length) => {
      if (offset + length > bytes.length) throw new Error('a part behind the end was asked for');
      return bytes.subarray(offset, offset + length);
    },
  };
}
