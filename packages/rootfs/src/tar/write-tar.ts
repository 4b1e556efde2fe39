import { writePaxRecord } from './pax-records.ts';
import { type ByteText, type TarEntry, type TarEntryType, textBytes } from './tar-entry.ts';
import { MAX_OCTAL_SIZE } from './tar-extensions.ts';
import { paddingOf, TAR_BLOCK_BYTES } from './tar-header.ts';

/** Bytes of the end mark. */
export const TAR_END_BYTES = 2 * TAR_BLOCK_BYTES;

const NAME_BYTES = 100;
/** Largest number that a field of 8 bytes can state in octal digits. */
const MAX_SHORT_OCTAL = 0o7777777;
const FLAGS: Readonly<Record<TarEntryType, string>> = {
  file: '0',
  'hard-link': '1',
  'symbolic-link': '2',
  'character-device': '3',
  'block-device': '4',
  directory: '5',
  fifo: '6',
};

/** The header blocks of one entry: ustar, with a pax header in front for what does not fit. The same entry always gives the same bytes. */
export function writeTarHeader(entry: TarEntry): Buffer {
  const path = textBytes(entry.path);
  const link = textBytes(entry.linkName);
  const records: Buffer[] = [];
  const record = (key: ByteText, value: Uint8Array | string): void => {
    records.push(writePaxRecord(key, typeof value === 'string' ? Buffer.from(value) : value));
  };
  if (path.length > NAME_BYTES) record('path', path);
  if (link.length > NAME_BYTES) record('linkpath', link);
  if (entry.size > MAX_OCTAL_SIZE) record('size', String(entry.size));
  if (entry.uid > MAX_SHORT_OCTAL) record('uid', String(entry.uid));
  if (entry.gid > MAX_SHORT_OCTAL) record('gid', String(entry.gid));
  for (const name of [...entry.xattrs.keys()].sort()) record(`SCHILY.xattr.${name}`, entry.xattrs.get(name) ?? Buffer.alloc(0));
  const header = headerBlock(entry, path, link);
  if (records.length === 0) return header;
  const pax = Buffer.concat(records);
  const paxEntry = { ...entry, type: 'file', size: pax.length, mode: 0o644, uid: 0, gid: 0, deviceMajor: 0, deviceMinor: 0 } as const;
  const paxHeader = headerBlock(paxEntry, Buffer.from('pax'), Buffer.alloc(0), 'x');
  return Buffer.concat([paxHeader, pax, Buffer.alloc(paddingOf(pax.length)), header]);
}

function headerBlock(entry: Omit<TarEntry, 'xattrs'>, path: Buffer, link: Buffer, flag = FLAGS[entry.type]): Buffer {
  const block = Buffer.alloc(TAR_BLOCK_BYTES);
  const text = (at: number, value: string): void => void block.write(value, at, 'latin1');
  const octal = (at: number, digits: number, value: number): void => text(at, value.toString(8).padStart(digits, '0'));
  block.set(path.subarray(0, NAME_BYTES), 0);
  octal(100, 7, entry.mode);
  octal(108, 7, Math.min(entry.uid, MAX_SHORT_OCTAL));
  octal(116, 7, Math.min(entry.gid, MAX_SHORT_OCTAL));
  octal(124, 11, entry.size > MAX_OCTAL_SIZE ? 0 : entry.size);
  octal(136, 11, entry.mtime);
  text(148, ' '.repeat(8));
  text(156, flag);
  block.set(link.subarray(0, NAME_BYTES), 157);
  text(257, 'ustar\x0000');
  octal(329, 7, entry.deviceMajor);
  octal(337, 7, entry.deviceMinor);
  let sum = 0;
  for (const byte of block) sum += byte;
  text(148, `${sum.toString(8).padStart(6, '0')}\0 `);
  return block;
}
