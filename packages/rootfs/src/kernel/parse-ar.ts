import type { ByteSource } from '../tar/scan-tar.ts';
import { malformedPackage } from './package-errors.ts';

/** One member of an ar archive. */
export interface ArMember {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

const MAGIC = '!<arch>\n';
const HEADER_BYTES = 60;
/** A package of Debian has three members. */
const MAX_MEMBERS = 16;

/** The members of an ar archive. Throws `package_malformed`. */
export async function listArMembers(source: ByteSource): Promise<readonly ArMember[]> {
  if (source.size < MAGIC.length || (await source.read(0, MAGIC.length)).toString('latin1') !== MAGIC)
    throw malformedPackage('it is no package of Debian');
  const members: ArMember[] = [];
  for (let at = MAGIC.length; at < source.size; ) {
    if (source.size - at < HEADER_BYTES) throw malformedPackage('it is cut');
    const header = (await source.read(at, HEADER_BYTES)).toString('latin1');
    const size = /^[0-9]{1,10} *$/.test(header.slice(48, 58)) ? Number(header.slice(48, 58)) : Number.NaN;
    at += HEADER_BYTES;
    if (header.slice(58) !== '`\n' || Number.isNaN(size)) throw malformedPackage('a header in it is damaged');
    if (size > source.size - at || members.length >= MAX_MEMBERS) throw malformedPackage('it is cut, or no package');
    members.push({ name: header.slice(0, 16).trimEnd().replace(/\/$/, ''), offset: at, size });
    // Members begin at even offsets.
    at += size + (size % 2);
  }
  return members;
}
