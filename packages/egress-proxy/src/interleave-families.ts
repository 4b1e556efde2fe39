import type { CheckedAddress } from './dial.ts';

/**
 * Addresses in the order to try them: the families take turns, beginning with that of the first address, and each keeps the order of the
 * resolver (RFC 8305, section 4). One family that leads nowhere then costs one stagger and not one for each of its addresses.
 */
export function interleaveFamilies(addresses: readonly CheckedAddress[]): CheckedAddress[] {
  const first = addresses[0]?.family;
  const [same, other] = [addresses.filter(({ family }) => family === first), addresses.filter(({ family }) => family !== first)];
  return Array.from({ length: Math.max(same.length, other.length) }, (_, at) => [same[at], other[at]])
    .flat()
    .filter((address) => address !== undefined);
}
