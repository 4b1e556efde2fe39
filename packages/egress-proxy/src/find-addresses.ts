import { decideAddress, type EgressPolicy } from '@firecrew/egress-policy';
import type { Cut } from './cut.ts';
import { raceDeadline } from './deadline.ts';
import type { CheckedAddress } from './dial.ts';
import type { LookUps } from './look-up.ts';
import type { Refusal } from './refusal.ts';

type AddressRefusal = Pick<Refusal, 'verdict' | 'reason' | 'address' | 'rule'>;

/** Addresses that were all checked, in dialling order, or why there are none. */
export type AddressStep =
  | { readonly kind: 'found'; readonly addresses: readonly CheckedAddress[] }
  | { readonly kind: 'refused'; readonly refusal: AddressRefusal }
  | { readonly kind: 'cancelled' };

interface AddressQuery {
  readonly lookUps: LookUps;
  /** The policy of now; asked when the answer is there. */
  readonly policy: () => EgressPolicy;
  readonly host: string;
  readonly lookupMs: number;
  readonly addressesMax: number;
  readonly cut: Cut;
}

function unreachable(reason: AddressRefusal['reason']): AddressStep {
  return { kind: 'refused', refusal: { verdict: 'unreachable', reason } };
}

/** Looks a host up and checks every address; one that is not allowed refuses them all, since the answer as a whole is not to be trusted. */
export async function findAddresses(query: AddressQuery): Promise<AddressStep> {
  const lookUp = query.lookUps.start(query.host);
  let texts: readonly string[];
  try {
    const raced = await raceDeadline(lookUp.answer, query.lookupMs, query.cut);
    if (raced.kind === 'cancelled') return { kind: 'cancelled' };
    if (raced.kind === 'deadline') return unreachable('lookup_timeout');
    texts = raced.value ?? [];
  } catch {
    return unreachable('lookup_failed');
  } finally {
    lookUp.release();
  }
  if (texts.length === 0) return unreachable('lookup_empty');
  if (texts.length > query.addressesMax) return unreachable('too_many_addresses');
  const policy = query.policy();
  const checked = new Map<string, CheckedAddress>();
  for (const address of texts) {
    const decision = decideAddress({ policy, host: query.host, address });
    if (decision.verdict === 'denied') {
      const { reason, address: denied, rule } = decision;
      return { kind: 'refused', refusal: { verdict: 'denied', reason, ...(denied && { address: denied }), ...(rule && { rule }) } };
    }
    checked.set(decision.address, { address: decision.address, family: decision.family });
  }
  return { kind: 'found', addresses: [...checked.values()] };
}
