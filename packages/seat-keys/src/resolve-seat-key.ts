import type { StoreRead } from './ports.ts';
import type { ResolveReason } from './reasons.ts';
import type { SeatKey } from './seat-key.ts';
import { describeStoreError, type StoreError } from './store-error.ts';

/** When the stronger workspace key may stand in for a seat's own; an opt-in of the workspace. */
export type FallbackPolicy = 'never' | 'missing_key' | 'always';

/** All that decides under which key a role works. */
export interface ResolveFacts {
  readonly role: string;
  /** False for the interactive pairing role alone, which never has a key of its own. */
  readonly mayHoldKey: boolean;
  /** The linked seat. */
  readonly seatId?: string;
  /** What the store gave for the seat's address; absent where no seat is linked. */
  readonly stored?: StoreRead;
  /** The server refused this key in use (401). */
  readonly rejected?: boolean;
  readonly workspaceKey: SeatKey;
  /** Default `never`. */
  readonly fallback?: FallbackPolicy;
}

/** The key to work under. There is no fallback without a reason. */
export type Resolution =
  | { readonly kind: 'seat'; readonly key: SeatKey; readonly seatId: string }
  | { readonly kind: 'workspace'; readonly key: SeatKey; readonly reason: ResolveReason; readonly storeError?: StoreError }
  | { readonly kind: 'refused'; readonly reason: ResolveReason; readonly storeError?: StoreError };

/** Decides under which key a role's work is written, and why. A store that could not be read is never "no key stored". */
export function resolveSeatKey(facts: ResolveFacts): Resolution {
  if (!facts.mayHoldKey) return { kind: 'workspace', key: facts.workspaceKey, reason: 'role_never_seated' };
  if (facts.seatId === undefined || facts.stored === undefined) return fallBack(facts, 'seat_not_linked');
  if (facts.stored.status === 'unreadable') return fallBack(facts, 'store_unreadable', facts.stored.error);
  if (facts.stored.status === 'absent') return fallBack(facts, 'no_key_stored');
  if (facts.rejected === true) return fallBack(facts, 'key_rejected');
  return { kind: 'seat', key: facts.stored.record.key, seatId: facts.seatId };
}

function fallBack(facts: ResolveFacts, reason: ResolveReason, storeError?: StoreError): Resolution {
  const policy = facts.fallback ?? 'never';
  const isMissing = reason === 'seat_not_linked' || reason === 'no_key_stored';
  const allowed = policy === 'always' || (policy === 'missing_key' && isMissing);
  const why = storeError === undefined ? { reason } : { reason, storeError };
  return allowed ? { kind: 'workspace', key: facts.workspaceKey, ...why } : { kind: 'refused', ...why };
}

/** What a person is told: an administrator what to run, a member whom to ask and for which right. */
export function explainReason(
  why: { readonly reason: ResolveReason; readonly storeError?: StoreError },
  who: { readonly role: string; readonly viewer: 'administrator' | 'member' },
): string {
  const ask = 'ask an administrator of the workspace who may manage seats';
  const admin = who.viewer === 'administrator';
  switch (why.reason) {
    case 'role_never_seated':
      return `The role ${who.role} is interactive and always works under the workspace's key.`;
    case 'seat_not_linked':
      return `The role ${who.role} has no linked seat: ${admin ? `run \`firecrew seat link ${who.role}\`` : `${ask} to link one`}.`;
    case 'no_key_stored':
      return `No key of the role ${who.role} is stored here: ${admin ? `run \`firecrew seat mint ${who.role}\`` : `${ask} to mint one`}.`;
    case 'store_unreadable':
      return `The key of the role ${who.role} could not be read, which does not mean that there is none: ${describeStoreError(why.storeError ?? { fault: 'unknown' })}.`;
    case 'key_rejected':
      return `The server refused the key of the role ${who.role}: ${admin ? `run \`firecrew seat revoke ${who.role}\`, then mint it again` : `${ask} to replace it`}.`;
  }
}

/** Whether a turn may start under a resolution. */
export type PaymentCheck =
  | { readonly verdict: 'allowed' }
  | { readonly verdict: 'refused'; readonly reason: 'workspace_not_connected' | 'seat_key_required'; readonly message: string };

/** A backend whose model route is paid through the workspace needs the seat's OWN key; refused before anything starts. */
export function checkPayment(
  resolution: Resolution,
  turn: { readonly role: string; readonly backend: string; readonly paidThroughWorkspace: boolean; readonly workspaceConnected: boolean },
): PaymentCheck {
  if (!turn.paidThroughWorkspace) return { verdict: 'allowed' };
  const what = `the role ${turn.role} with the backend ${turn.backend}, whose model calls the workspace pays`;
  if (!turn.workspaceConnected) {
    return {
      verdict: 'refused',
      reason: 'workspace_not_connected',
      message: `Nothing was started for ${what}: the workspace is not connected.`,
    };
  }
  if (resolution.kind === 'seat') return { verdict: 'allowed' };
  return {
    verdict: 'refused',
    reason: 'seat_key_required',
    message: `Nothing was started for ${what}: it needs a key of its own (${resolution.reason}).`,
  };
}
