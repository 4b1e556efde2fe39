import { networkInterfaces } from 'node:os';

/** Every address of this host's interfaces, for `ownAddresses` of a policy. Addresses behind a load balancer or NAT must be added by the operator. */
export function listOwnAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map(({ address }) => address.replace(/%.*$/, '')));
}
