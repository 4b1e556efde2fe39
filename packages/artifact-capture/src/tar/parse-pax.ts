import { byteKey } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { parseDecimal } from './parse-number.ts';

const SPACE = 0x20;
const EQUALS = 0x3d;
const NEWLINE = 0x0a;
/** Digits of a record's length; the metadata bound is far below. */
const MAX_LENGTH_DIGITS = 10;

/** What an extension header changes about the entry that follows. */
export interface PaxOverrides {
  readonly path?: Uint8Array;
  readonly linkPath?: Uint8Array;
  readonly size?: number;
}

/**
 * Reads the records of an extension header. Keys that do not concern name or size are ignored; values stay bytes; what a name may be is
 * judged where every name is.
 * @throws CaptureError on a length that lies, a key given twice, anything sparse, and on a
 * path or size in a global header.
 */
export function parsePax(bytes: Uint8Array, scope: 'entry' | 'global'): PaxOverrides {
  const records = readRecords(bytes);
  for (const key of records.keys()) {
    if (key.startsWith('GNU.sparse.')) throw new CaptureError('unsupported_extension', 'the archive holds a sparse file');
  }
  const path = records.get('path');
  const linkPath = records.get('linkpath');
  const size = records.get('size');
  if (scope === 'global' && (path ?? linkPath ?? size) !== undefined) {
    throw new CaptureError('unsupported_extension', 'a global header names a path or a size');
  }
  return {
    ...(path === undefined ? {} : { path }),
    ...(linkPath === undefined ? {} : { linkPath }),
    ...(size === undefined ? {} : { size: parseDecimal(byteKey(size)) }),
  };
}

function readRecords(bytes: Uint8Array): Map<string, Uint8Array> {
  const records = new Map<string, Uint8Array>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(SPACE, at);
    if (space === -1 || space === at || space - at > MAX_LENGTH_DIGITS) throw bad('a record has no length');
    const end = at + lengthOf(bytes.subarray(at, space));
    if (end <= space + 1 || end > bytes.length || bytes[end - 1] !== NEWLINE) throw bad('the length of a record is wrong');
    const equals = bytes.indexOf(EQUALS, space + 1);
    if (equals === -1 || equals >= end - 1 || equals === space + 1) throw bad('a record has no key');
    const key = byteKey(bytes.subarray(space + 1, equals));
    if (records.has(key)) throw bad('a key is there twice');
    records.set(key, bytes.slice(equals + 1, end - 1));
    at = end;
  }
  return records;
}

function lengthOf(digits: Uint8Array): number {
  try {
    return parseDecimal(byteKey(digits));
  } catch {
    throw bad('the length of a record is no number');
  }
}

function bad(what: string): CaptureError {
  return new CaptureError('bad_pax_record', `an extension header is refused: ${what}`);
}
