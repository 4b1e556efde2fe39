import {
  addressOf,
  askSafely,
  describeIssuer,
  foreignKey,
  isSuccess,
  judgeReply,
  type MintRun,
  mintKey,
  openSafely,
  probeStore,
  readSafely,
  revokeSafely,
  type SeatTarget,
  safeId,
  storeMinted,
} from './mint-seat-keys.ts';
import type { Issuer, KeyStore } from './ports.ts';
import type { RotateOutcomeKind } from './reasons.ts';
import { describeStoreError } from './store-error.ts';

/** What became of one role. `detail` never holds a secret. */
export interface RotateOutcome {
  readonly role: string;
  readonly outcome: RotateOutcomeKind;
  readonly detail?: string;
}

/**
 * Gives seats that have a key a new one in its place: the new key is minted and stored before the old one is revoked, with the new one as
 * its successor, so that what runs under the seat goes on. A key that could not be stored is taken back and the old one stays. An issuer that
 * exchanges a key in one step is asked for that. A 403 ends the run with one `forbidden`.
 */
export async function rotateSeatKeys(run: MintRun): Promise<readonly RotateOutcome[]> {
  const store = await openSafely(run.openStore);
  if ('fault' in store) return run.targets.map(({ role }) => failed(role, `the store could not be opened: ${describeStoreError(store)}`));
  const linked = run.targets.some((target) => target.seatId !== undefined);
  const problem = linked && run.dryRun !== true ? await probeStore(store.opened, run) : undefined;
  const outcomes: RotateOutcome[] = [];
  for (const target of run.targets) {
    const outcome =
      problem !== undefined && target.seatId !== undefined
        ? failed(target.role, `nothing was minted, since the store cannot be written: ${describeStoreError(problem)}`)
        : await rotateOne(run, store.opened, target);
    outcomes.push(outcome);
    if (outcome.outcome === 'forbidden') break;
  }
  return outcomes;
}

async function rotateOne(run: MintRun, store: KeyStore, { role, seatId }: SeatTarget): Promise<RotateOutcome> {
  if (seatId === undefined) return { role, outcome: 'no_seat' };
  const known = await readSafely(store, addressOf(run, seatId));
  if (known.status === 'unreadable') return failed(role, `whether a key is stored could not be read: ${describeStoreError(known.error)}`);
  if (known.status === 'absent') return { role, outcome: 'not_stored' };
  const foreign = foreignKey(run.issuer, known.record);
  if (foreign !== undefined) return failed(role, foreign);
  const old = known.record.keyId;
  if (old === undefined || old === '') return failed(role, 'the stored key has no id, so it could not be revoked: it was kept');
  if (run.dryRun === true) return { role, outcome: 'rotated', detail: 'dry run' };
  const { rotate } = run.issuer;
  if (rotate !== undefined) return await exchange(run, store, { role, seatId }, old, rotate.bind(run.issuer));
  const minted = await mintKey(run, role, seatId);
  if (minted.status !== 'minted') return { role, outcome: minted.status, detail: minted.detail };
  if (minted.keyId === old) return failed(role, `${describeIssuer(run.issuer)} gave the key that is stored already: nothing was changed`);
  const trouble = await storeMinted(run, store, seatId, minted);
  if (trouble !== undefined) return failed(role, trouble);
  const { status } = await revokeSafely(run.issuer, old, minted.keyId);
  if (isSuccess(status)) return { role, outcome: 'rotated' };
  if (status === 404) return { role, outcome: 'rotated', detail: 'the old key was already gone on the server' };
  return failed(role, `the new key is stored and used, but the old key ${safeId(old)} IS STILL VALID: revoke it on the server`);
}

/** In one step of the issuer, after which the old key is dead: one that cannot be stored then is taken back, and the role has none. */
async function exchange(
  run: MintRun,
  store: KeyStore,
  { role, seatId }: { readonly role: string; readonly seatId: string },
  old: string,
  rotate: NonNullable<Issuer['rotate']>,
): Promise<RotateOutcome> {
  const request = { seatId, role, name: `firecrew ${run.nodeName} ${role}` };
  const reply = await askSafely(() => rotate(old, request));
  if (reply.status === 404)
    return failed(role, `${describeIssuer(run.issuer)} has no key ${safeId(old)}: revoke it, which forgets it here, and mint anew`);
  const minted = judgeReply(run.issuer, request, reply, reply.keyId ?? old);
  if (minted.status === 'forbidden') return { role, outcome: 'forbidden', detail: minted.detail };
  const mayBeDead = reply.status === 'unreachable' || isSuccess(reply.status);
  if (minted.status !== 'minted') return failed(role, mayBeDead ? `${minted.detail}; the stored key may be dead by now` : minted.detail);
  const trouble = await storeMinted(run, store, seatId, minted);
  return trouble === undefined
    ? { role, outcome: 'rotated' }
    : failed(role, `${trouble}; the key that is stored here is dead: revoke it and mint anew`);
}

function failed(role: string, detail: string): RotateOutcome {
  return { role, outcome: 'failed', detail };
}
