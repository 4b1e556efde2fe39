import {
  addressOf,
  clearSafely,
  describeIssuer,
  describeStatus,
  foreignKey,
  isSuccess,
  openSafely,
  readSafely,
  revokeSafely,
  type SeatContext,
  type SeatTarget,
  safeId,
} from './mint-seat-keys.ts';
import type { KeyStore } from './ports.ts';
import type { RevokeOutcomeKind } from './reasons.ts';
import { describeStoreError } from './store-error.ts';

/** What became of one role. `detail` never holds a secret. */
export interface RevokeOutcome {
  readonly role: string;
  readonly outcome: RevokeOutcomeKind;
  readonly detail?: string;
}

/** Ends keys: on the server first, and only when that says the key is gone is the local copy cleared. One failure never stops the next role. */
export async function revokeSeatKeys(run: SeatContext & { readonly targets: readonly SeatTarget[] }): Promise<readonly RevokeOutcome[]> {
  const store = await openSafely(run.openStore);
  if ('fault' in store) return run.targets.map(({ role }) => failed(role, `the store could not be opened: ${describeStoreError(store)}`));
  const outcomes: RevokeOutcome[] = [];
  for (const target of run.targets) outcomes.push(await revokeOne(run, store.opened, target));
  return outcomes;
}

async function revokeOne(run: SeatContext, store: KeyStore, target: SeatTarget): Promise<RevokeOutcome> {
  const { role, seatId } = target;
  if (seatId === undefined) return { role, outcome: 'no_seat' };
  const address = addressOf(run, seatId);
  const known = await readSafely(store, address);
  if (known.status === 'unreadable') return failed(role, `whether a key is stored could not be read: ${describeStoreError(known.error)}`);
  if (known.status === 'absent') return { role, outcome: 'not_stored' };
  const foreign = foreignKey(run.issuer, known.record);
  if (foreign !== undefined) return failed(role, foreign);
  const { keyId } = known.record;
  if (keyId === undefined || keyId === '') {
    return failed(role, 'the stored key has no id: revoke it by hand on the server, then remove the local copy; it was kept');
  }
  if (run.dryRun === true) return { role, outcome: 'revoked', detail: 'dry run' };
  const { status } = await revokeSafely(run.issuer, keyId);
  if (!isSuccess(status) && status !== 404)
    return failed(role, `${describeIssuer(run.issuer)} ${describeStatus(status)}; the key ${safeId(keyId)} is kept here`);
  const cleared = await clearSafely(store, address);
  if (cleared.status === 'failed') {
    return failed(role, `the key is revoked on the server, but the local copy could not be removed: ${describeStoreError(cleared.error)}`);
  }
  return status === 404 ? { role, outcome: 'revoked', detail: 'it was already gone there' } : { role, outcome: 'revoked' };
}

function failed(role: string, detail: string): RevokeOutcome {
  return { role, outcome: 'failed', detail };
}
