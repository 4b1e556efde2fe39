import { concatBytes, isUtf8, utf8 } from '../bytes.ts';
import type { EntryKind } from '../tree/manifest-entry.ts';
import { MAX_OCTAL_SIZE } from './extensions.ts';
import { TAR_BLOCK_BYTES } from './parse-header.ts';

/** What a canonical header is made of; owner and times are always zero. */
export interface TarHeaderFields {
  readonly path: Uint8Array;
  readonly kind: EntryKind;
  /** Bytes of content that follow; 0 for links and folders. */
  readonly size: number;
  /** Target of a link. */
  readonly target?: Uint8Array;
}

/** The two zero blocks that end an archive. */
export const TAR_END_BYTES = 2 * TAR_BLOCK_BYTES;

const NAME_BYTES = 100;
const SLASH = new Uint8Array([0x2f]);
const NO_OWNER = octal(0, 7);
const NO_TIME = octal(0, 11);
const BLANK_HEADER = blankHeader();
const BLANK_SUM = sumOf(BLANK_HEADER);
const MODE: Record<EntryKind, number> = { file: 0o644, executable: 0o755, link: 0o777, directory: 0o755 };
const TYPE_FLAG: Record<EntryKind, string> = { file: '0', executable: '0', link: '2', directory: '5' };

/**
 * The header blocks of one entry in the canonical form: ustar, and an extension header in front for names that are longer
 * than 100 bytes or not ASCII and for sizes from 8 GiB. The same fields always give the same bytes.
 */
export function writeTarHeader(fields: TarHeaderFields): Uint8Array {
  const name = fields.kind === 'directory' ? concatBytes([fields.path, SLASH]) : fields.path;
  const target = fields.target ?? new Uint8Array(0);
  const records: Uint8Array[] = [];
  if (!isUtf8(name) || !isUtf8(target)) records.push(paxRecord('hdrcharset', utf8('BINARY')));
  if (!fitsField(name)) records.push(paxRecord('path', name));
  if (!fitsField(target)) records.push(paxRecord('linkpath', target));
  if (fields.size > MAX_OCTAL_SIZE) records.push(paxRecord('size', utf8(String(fields.size))));
  const mode = MODE[fields.kind];
  const header = headerBlock(name, TYPE_FLAG[fields.kind], fields.size > MAX_OCTAL_SIZE ? 0 : fields.size, mode, target);
  if (records.length === 0) return header;
  const pax = concatBytes(records);
  const paxHeader = headerBlock(utf8('pax'), 'x', pax.length, 0o644, new Uint8Array(0));
  return concatBytes([paxHeader, pax, tarPadding(pax.length), header]);
}

/**
 * Puts the header of a file into the {@link TAR_BLOCK_BYTES} of `target` from `at` on, as {@link writeTarHeader} would write it, and says
 * whether it did: not where the file needs an extension header. `key` is the path, one character for each byte.
 */
export function putFileHeader(
  target: Uint8Array,
  at: number,
  { key, kind, size }: { readonly key: string; readonly kind: 'file' | 'executable'; readonly size: number },
): boolean {
  if (key.length > NAME_BYTES || size > MAX_OCTAL_SIZE) return false;
  target.set(BLANK_HEADER, at);
  let sum = 0;
  for (let index = 0; index < key.length; index += 1) {
    const code = key.charCodeAt(index);
    if (code >= 0x80) return false;
    target[at + index] = code;
    sum += code;
  }
  finishHeader(target, at, TYPE_FLAG[kind], size, MODE[kind], sum);
  return true;
}

/** The zero bytes that follow content of this size. */
export function tarPadding(size: number): Uint8Array {
  return new Uint8Array((TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES);
}

/** The end mark. */
export function tarEnd(): Uint8Array {
  return new Uint8Array(TAR_END_BYTES);
}

function headerBlock(name: Uint8Array, typeFlag: string, size: number, mode: number, target: Uint8Array): Uint8Array {
  const block = new Uint8Array(TAR_BLOCK_BYTES);
  const shownName = name.length > NAME_BYTES ? name.subarray(0, NAME_BYTES) : name;
  const shownTarget = target.length > NAME_BYTES ? target.subarray(0, NAME_BYTES) : target;
  block.set(BLANK_HEADER);
  block.set(shownName, 0);
  block.set(shownTarget, 157);
  finishHeader(block, 0, typeFlag, size, mode, sumOf(shownName) + sumOf(shownTarget));
  return block;
}

/** Fills in what follows the names, whose bytes sum up to `namesSum`. */
function finishHeader(block: Uint8Array, at: number, typeFlag: string, size: number, mode: number, namesSum: number): void {
  const texts = putText(block, at + 100, octal(mode, 7)) + putText(block, at + 124, octal(size, 11)) + putText(block, at + 156, typeFlag);
  putText(block, at + 148, `${octal(BLANK_SUM + texts + namesSum, 6)} `);
}

/** What all headers share, the checksum field as blanks: so it is counted. */
function blankHeader(): Uint8Array {
  const block = new Uint8Array(TAR_BLOCK_BYTES);
  putText(block, 108, NO_OWNER);
  putText(block, 116, NO_OWNER);
  putText(block, 136, NO_TIME);
  block.fill(0x20, 148, 156);
  putText(block, 257, 'ustar\x0000');
  return block;
}

function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 1) sum += bytes[at] ?? 0;
  return sum;
}

/** Writes ASCII text; returns the sum of its bytes. */
function putText(block: Uint8Array, at: number, text: string): number {
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    block[at + index] = code;
    sum += code;
  }
  return sum;
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}

function fitsField(text: Uint8Array): boolean {
  return text.length <= NAME_BYTES && text.every((byte) => byte < 0x80);
}

function paxRecord(key: string, value: Uint8Array): Uint8Array {
  // The length counts its own digits.
  const rest = key.length + value.length + 3;
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return concatBytes([utf8(`${length} ${key}=`), value, utf8('\n')]);
}
