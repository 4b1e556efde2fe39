/** An address in its one form: 4 bytes for IPv4 and for IPv4 mapped into IPv6, else 16 bytes. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly bytes: Uint8Array;
  /** Canonical text (dotted quad, or RFC 5952 without embedded IPv4). */
  readonly text: string;
}

/** A range of addresses of one family. */
export interface IpRange {
  readonly base: IpAddress;
  /** Fixed leading bits, 0 to 32 or 0 to 128. */
  readonly prefix: number;
}

const IPV4_BYTES = 4;
const IPV6_GROUPS = 8;
const OCTET = /^(?:0|[1-9][0-9]{0,2})$/;
const GROUP = /^[0-9A-Fa-f]{1,4}$/;

function parseIpv4Bytes(text: string): number[] | undefined {
  const parts = text.split('.');
  if (parts.length !== IPV4_BYTES) return undefined;
  const bytes: number[] = [];
  for (const part of parts) {
    if (!OCTET.test(part) || Number(part) > 255) return undefined;
    bytes.push(Number(part));
  }
  return bytes;
}

/** Groups of one side of `::`; a dotted tail counts as two. */
function parseGroups(text: string, tailAllowed: boolean): number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (tailAllowed && index === parts.length - 1 && part.includes('.')) {
      const [a, b, c, d] = parseIpv4Bytes(part) ?? [];
      if (a === undefined || b === undefined || c === undefined || d === undefined) return undefined;
      groups.push(a * 256 + b, c * 256 + d);
    } else if (GROUP.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

function parseIpv6Groups(text: string): number[] | undefined {
  const gap = text.indexOf('::');
  if (gap === -1) {
    const groups = parseGroups(text, true);
    return groups?.length === IPV6_GROUPS ? groups : undefined;
  }
  const head = parseGroups(text.slice(0, gap), false);
  const tail = parseGroups(text.slice(gap + 2), true);
  if (head === undefined || tail === undefined || head.length + tail.length >= IPV6_GROUPS) return undefined;
  return [...head, ...new Array<number>(IPV6_GROUPS - head.length - tail.length).fill(0), ...tail];
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== 0) start = index + 1;
    else if (index + 1 - start > best.length) best = { start, length: index + 1 - start };
  }
  return best;
}

function formatGroups(groups: readonly number[]): string {
  const run = longestZeroRun(groups);
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':');
  if (run.length < 2) return hex(groups);
  return `${hex(groups.slice(0, run.start))}::${hex(groups.slice(run.start + run.length))}`;
}

function ipv4(bytes: readonly number[]): IpAddress {
  return { family: 4, bytes: Uint8Array.from(bytes), text: bytes.join('.') };
}

/** The IPv4 address in four bytes of `bytes` from `offset`. */
export function embeddedIpv4(bytes: Uint8Array, offset: number): IpAddress {
  return ipv4([...bytes.subarray(offset, offset + IPV4_BYTES)]);
}

/**
 * Reads an address strictly: dotted quad without leading zeros, or IPv6 text without a zone (RFC 4291 section 2.2).
 * IPv4 mapped into IPv6 comes back as IPv4, so that no check sees two forms of one address. Anything else gives undefined.
 */
export function parseIp(text: string): IpAddress | undefined {
  if (!text.includes(':')) {
    const bytes = parseIpv4Bytes(text);
    return bytes === undefined ? undefined : ipv4(bytes);
  }
  const groups = parseIpv6Groups(text);
  if (groups === undefined) return undefined;
  const bytes = Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return mapped ? embeddedIpv4(bytes, 12) : { family: 6, bytes, text: formatGroups(groups) };
}

/** Reads `ADDRESS` or `ADDRESS/PREFIX`; bits after the prefix must be zero. Mapped IPv6 ranges are not accepted. */
export function parseIpRange(text: string): IpRange | undefined {
  const slash = text.indexOf('/');
  const base = parseIp(slash === -1 ? text : text.slice(0, slash));
  if (base === undefined) return undefined;
  const bits = base.bytes.length * 8;
  if (slash === -1) return { base, prefix: bits };
  if (base.family === 4 && text.includes(':')) return undefined;
  const prefixText = text.slice(slash + 1);
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(prefixText)) return undefined;
  const prefix = Number(prefixText);
  if (prefix > bits) return undefined;
  const clean = base.bytes.every((byte, index) => (byte & (0xff >> Math.min(8, Math.max(0, prefix - index * 8)))) === 0);
  return clean ? { base, prefix } : undefined;
}

/** Whether `address` lies in `range`. */
export function inRange(address: IpAddress, range: IpRange): boolean {
  if (address.family !== range.base.family) return false;
  for (const [index, byte] of address.bytes.entries()) {
    const bits = Math.min(8, range.prefix - index * 8);
    if (bits <= 0) return true;
    if ((byte ^ (range.base.bytes[index] ?? 0)) >> (8 - bits) !== 0) return false;
  }
  return true;
}

/** Whether two addresses are the same one. */
export function sameAddress(a: IpAddress, b: IpAddress): boolean {
  return a.family === b.family && a.bytes.every((byte, index) => byte === b.bytes[index]);
}
