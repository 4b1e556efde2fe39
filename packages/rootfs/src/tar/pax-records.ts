import { malformedArchive } from './refusals.ts';
import { type ByteText, byteText } from './tar-entry.ts';

const SPACE = 0x20;
const EQUALS = 0x3d;
const NEWLINE = 0x0a;
/** Digits of the length of a record; the bound of the whole header is far below. */
const MAX_LENGTH_DIGITS = 10;

/** The records of a pax header. Values stay bytes. Throws `layer_malformed` on a length that lies and on a key given twice. */
export function parsePaxRecords(bytes: Uint8Array): ReadonlyMap<ByteText, Buffer> {
  const records = new Map<ByteText, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(SPACE, at);
    if (space === -1 || space === at || space - at > MAX_LENGTH_DIGITS) throw malformedArchive('a record has no length');
    const digits = byteText(bytes.subarray(at, space));
    const end = /^[1-9][0-9]*$/.test(digits) ? at + Number(digits) : 0;
    if (end <= space + 1 || end > bytes.length || bytes[end - 1] !== NEWLINE) throw malformedArchive('the length of a record is wrong');
    const equals = bytes.indexOf(EQUALS, space + 1);
    if (equals === -1 || equals >= end - 1 || equals === space + 1) throw malformedArchive('a record has no key');
    const key = byteText(bytes.subarray(space + 1, equals));
    if (records.has(key)) throw malformedArchive('a key is there twice');
    records.set(key, Buffer.from(bytes.subarray(equals + 1, end - 1)));
    at = end;
  }
  return records;
}

/** One record; the length that leads it counts its own digits. */
export function writePaxRecord(key: ByteText, value: Uint8Array): Buffer {
  const rest = key.length + value.length + 3;
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`, 'latin1'), value, Buffer.from('\n')]);
}
