import { embeddedIpv4, type IpAddress, type IpRange, inRange, parseIpRange } from './ip-address.ts';
import type { AddressDenial } from './reasons.ts';

/** A range that is not the public internet. `openable`: an operator's address rule may allow it. */
export interface SpecialRange {
  readonly range: IpRange;
  readonly text: string;
  readonly reason: AddressDenial;
  readonly openable: boolean;
}

type Row = readonly [text: string, reason: AddressDenial, openable?: false];

// IANA special-purpose registries (RFC 6890 and successors), and addresses by which clouds serve metadata or host services.
// The narrower range stands first.
const ROWS: readonly Row[] = [
  ['169.254.169.254', 'metadata_address'],
  ['169.254.170.2', 'metadata_address'],
  ['100.100.100.200', 'metadata_address'],
  ['168.63.129.16', 'metadata_address'],
  ['192.0.0.192', 'metadata_address'],
  ['0.0.0.0/8', 'unspecified_address', false],
  ['10.0.0.0/8', 'private_address'],
  ['100.64.0.0/10', 'shared_address'],
  ['127.0.0.0/8', 'loopback_address'],
  ['169.254.0.0/16', 'link_local_address'],
  ['172.16.0.0/12', 'private_address'],
  ['192.0.0.0/24', 'reserved_address'],
  ['192.0.2.0/24', 'documentation_address'],
  ['192.31.196.0/24', 'reserved_address'],
  ['192.52.193.0/24', 'reserved_address'],
  ['192.88.99.0/24', 'translated_address'],
  ['192.168.0.0/16', 'private_address'],
  ['192.175.48.0/24', 'reserved_address'],
  ['198.18.0.0/15', 'benchmark_address'],
  ['198.51.100.0/24', 'documentation_address'],
  ['203.0.113.0/24', 'documentation_address'],
  ['224.0.0.0/4', 'multicast_address', false],
  ['240.0.0.0/4', 'reserved_address', false],
  ['fd00:ec2::254', 'metadata_address'],
  ['fd20:ce::254', 'metadata_address'],
  ['::', 'unspecified_address', false],
  ['::1', 'loopback_address'],
  ['::/96', 'translated_address', false],
  ['64:ff9b:1::/48', 'translated_address'],
  ['2001::/32', 'translated_address', false],
  ['2001:db8::/32', 'documentation_address'],
  ['2001::/23', 'reserved_address'],
  ['2002::/16', 'translated_address', false],
  ['3fff::/20', 'documentation_address'],
  ['2620:4f:8000::/48', 'reserved_address'],
  ['fc00::/7', 'private_address'],
  ['fe80::/10', 'link_local_address'],
  ['fec0::/10', 'private_address'],
  ['ff00::/8', 'multicast_address', false],
];

function range(text: string): IpRange {
  const parsed = parseIpRange(text);
  if (parsed === undefined) throw new TypeError(`bad range ${text}`);
  return parsed;
}

/** Every range that no allow-list opens, narrower before wider. */
export const SPECIAL_RANGES: readonly SpecialRange[] = ROWS.map(([text, reason, openable]) => ({
  range: range(text),
  text,
  reason,
  openable: openable ?? true,
}));

const GLOBAL_UNICAST = range('2000::/3');
const NAT64 = range('64:ff9b::/96');

/** The IPv4 address that a NAT64 gateway (RFC 6052) would dial for `address`, else undefined. */
export function translatedIpv4(address: IpAddress): IpAddress | undefined {
  return address.family === 6 && inRange(address, NAT64) ? embeddedIpv4(address.bytes, 12) : undefined;
}

/** The special range an address lies in; undefined for a public one. IPv6 outside global unicast is special as a whole. */
export function findSpecialRange(address: IpAddress): Omit<SpecialRange, 'range'> | undefined {
  const listed = SPECIAL_RANGES.find((special) => inRange(address, special.range));
  if (listed !== undefined) return listed;
  if (address.family === 4 || inRange(address, GLOBAL_UNICAST) || translatedIpv4(address) !== undefined) return undefined;
  return { text: 'outside 2000::/3', reason: 'not_global_address', openable: false };
}
