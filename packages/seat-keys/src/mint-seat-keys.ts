import type { Issuer, KeyAddress, KeyStore, StoreChange, StoredKey, StoreRead } from './ports.ts';
import type { MintOutcomeKind } from './reasons.ts';
import { SeatKey } from './seat-key.ts';
import { describeStoreError, type StoreError, storeErrorOf } from './store-error.ts';

/** A role that may hold a key; the release seat is one of them. */
export interface SeatTarget {
  readonly role: string;
  /** Absent where no seat is linked. */
  readonly seatId?: string;
}

/** What keys are minted or revoked with. */
export interface SeatContext {
  readonly serverHost: string;
  readonly workspace: string;
  /** Opens the store; throws where it cannot be opened. */
  readonly openStore: () => Promise<KeyStore>;
  readonly issuer: Issuer;
  /** Nothing is requested and nothing written. */
  readonly dryRun?: boolean;
}

/** What became of one role. `detail` never holds a secret. */
export interface MintOutcome {
  readonly role: string;
  readonly outcome: MintOutcomeKind;
  readonly detail?: string;
}

/** Seat id of the throw-away entry that proves the store writable. */
export const PROBE_SEAT = 'write-probe';

/** What one minting needs: the seats, where they belong and the time. */
export interface MintRun extends SeatContext {
  readonly targets: readonly SeatTarget[];
  readonly workspaceId: string;
  /** Shown in the key's name on the server. */
  readonly nodeName: string;
  /** ISO 8601. */
  readonly now: string;
}

/**
 * Gives every linked seat a key of its own, one outcome per role in the order of the targets. The store is opened and proved writable,
 * by a write that is read back, before the first request, and a key that could not be stored is taken back at once: none is left alive
 * that nobody holds. A 403 ends the run with one `forbidden`.
 */
export async function mintSeatKeys(run: MintRun): Promise<readonly MintOutcome[]> {
  const store = await openSafely(run.openStore);
  if ('fault' in store) return run.targets.map(({ role }) => failed(role, `the store could not be opened: ${describeStoreError(store)}`));
  const linked = run.targets.some((target) => target.seatId !== undefined);
  const problem = linked && run.dryRun !== true ? await probeStore(store.opened, run) : undefined;
  const outcomes: MintOutcome[] = [];
  for (const target of run.targets) {
    const outcome =
      problem !== undefined && target.seatId !== undefined
        ? failed(target.role, `nothing was minted, since the store cannot be written: ${describeStoreError(problem)}`)
        : await mintOne(run, store.opened, target);
    outcomes.push(outcome);
    if (outcome.outcome === 'forbidden') break;
  }
  return outcomes;
}

/** One line for each outcome. */
export function renderOutcome(outcome: { readonly role: string; readonly outcome: string; readonly detail?: string }): string {
  const text = `${outcome.role}: ${outcome.outcome.replaceAll('_', ' ')}`;
  return outcome.detail === undefined ? text : `${text} (${outcome.detail})`;
}

/** May keys be minted? `no` only on a 403; everything else that is no success is `unknown`. */
export async function askMintRight(
  issuer: Issuer,
  facts: { readonly connected: boolean; readonly seatsLinked: number },
): Promise<'yes' | 'no' | 'unknown'> {
  if (!facts.connected || facts.seatsLinked === 0) return 'unknown';
  const { status } = await issuer.askMintRight().catch(() => ({ status: 'unreachable' as const }));
  if (status === 403) return 'no';
  return isSuccess(status) ? 'yes' : 'unknown';
}

async function mintOne(run: MintRun, store: KeyStore, target: SeatTarget): Promise<MintOutcome> {
  const { role, seatId } = target;
  if (seatId === undefined) return { role, outcome: 'no_seat' };
  const address = addressOf(run, seatId);
  const known = await readSafely(store, address);
  if (known.status === 'unreadable') return failed(role, `whether a key is stored could not be read: ${describeStoreError(known.error)}`);
  if (known.status === 'found') return { role, outcome: 'already_stored' };
  if (run.dryRun === true) return { role, outcome: 'minted', detail: 'dry run' };
  const minted = await mintKey(run, role, seatId);
  if (minted.status !== 'minted') return { role, outcome: minted.status, detail: minted.detail };
  const trouble = await storeMinted(run, store, seatId, minted);
  return trouble === undefined ? { role, outcome: 'minted' } : failed(role, trouble);
}

/** A key that the server has just made, or why there is none. */
export type Minted =
  | { readonly status: 'minted'; readonly key: SeatKey; readonly keyId: string }
  | { readonly status: 'forbidden' | 'failed'; readonly detail: string };

export async function mintKey(run: MintRun, role: string, seatId: string): Promise<Minted> {
  const name = `firecrew ${run.nodeName} ${role}`;
  const none = (detail: string): Minted => ({ status: 'failed', detail });
  const reply = await run.issuer.mint({ seatId, name }).catch(() => ({ status: 'unreachable' as const }));
  if (reply.status === 403) return { status: 'forbidden', detail: 'the server does not let this account mint seat keys' };
  if (reply.status === 'unreachable') return none(`the server gave no answer; look there for a key called "${name}" and revoke it`);
  if (!isSuccess(reply.status)) return none(`the server answered ${reply.status}`);
  const { key, keyId } = 'key' in reply ? reply : {};
  if (key === undefined || key.reveal() === '') return none('the answer of the server holds no key');
  if (keyId === undefined || keyId === '') {
    return none(
      `the server gave a key without an id, which could never be revoked, so it was thrown away: A LIVE KEY called "${name}" EXISTS; revoke it on the server`,
    );
  }
  return { status: 'minted', key, keyId };
}

/** Stores a new key; one that cannot be stored is taken back, and what became of it is the answer. */
export async function storeMinted(
  run: MintRun,
  store: KeyStore,
  seatId: string,
  { key, keyId }: { readonly key: SeatKey; readonly keyId: string },
): Promise<string | undefined> {
  const record = { key, keyId, seatId, workspaceId: run.workspaceId, createdAt: run.now };
  const stored = await writeSafely(store, addressOf(run, seatId), record);
  return stored.status === 'done' ? undefined : await takeBack(run.issuer, keyId, stored.error);
}

export async function revokeSafely(
  issuer: Issuer,
  keyId: string,
  successor?: string,
): Promise<{ readonly status: number | 'unreachable' }> {
  return await issuer.revoke(keyId, ...(successor === undefined ? [] : [{ successor }])).catch(() => ({ status: 'unreachable' as const }));
}

async function takeBack(issuer: Issuer, keyId: string, error: StoreError): Promise<string> {
  const why = `the new key could not be stored: ${describeStoreError(error)}`;
  const { status } = await revokeSafely(issuer, keyId);
  if (isSuccess(status) || status === 404) return `${why}; it was taken back`;
  return `${why}; the key ${safeId(keyId)} IS STILL VALID AND HELD BY NOBODY: revoke it on the server`;
}

/** Proves the store writable by a throw-away entry that is read back and cleared; gives what is wrong with it. */
export async function probeStore(store: KeyStore, run: MintRun): Promise<StoreError | undefined> {
  const address = addressOf(run, PROBE_SEAT);
  const record: StoredKey = { key: new SeatKey('probe'), workspaceId: run.workspaceId, seatId: PROBE_SEAT, createdAt: run.now };
  const written = await writeSafely(store, address, record);
  if (written.status === 'failed') return written.error;
  const back = await readSafely(store, address);
  const cleared = await clearSafely(store, address);
  if (back.status === 'unreadable') return back.error;
  if (back.status === 'absent' || back.record.key.reveal() !== 'probe') return { fault: 'corrupt' };
  return cleared.status === 'failed' ? cleared.error : undefined;
}

export function addressOf(context: Pick<SeatContext, 'serverHost' | 'workspace'>, seatId: string): KeyAddress {
  return { serverHost: context.serverHost, workspace: context.workspace, seatId };
}

export async function openSafely(open: () => Promise<KeyStore>): Promise<{ readonly opened: KeyStore } | StoreError> {
  try {
    return { opened: await open() };
  } catch (thrown) {
    return storeErrorOf(thrown);
  }
}

export async function readSafely(store: KeyStore, address: KeyAddress): Promise<StoreRead> {
  try {
    return await store.read(address);
  } catch (thrown) {
    return { status: 'unreadable', error: storeErrorOf(thrown) };
  }
}

export async function writeSafely(store: KeyStore, address: KeyAddress, record: StoredKey): Promise<StoreChange> {
  try {
    return await store.write(address, record);
  } catch (thrown) {
    return { status: 'failed', error: storeErrorOf(thrown) };
  }
}

export async function clearSafely(store: KeyStore, address: KeyAddress): Promise<StoreChange> {
  try {
    return await store.clear(address);
  } catch (thrown) {
    return { status: 'failed', error: storeErrorOf(thrown) };
  }
}

export function isSuccess(status: number | 'unreachable'): boolean {
  return typeof status === 'number' && status >= 200 && status < 300;
}

/** A server's id as it may stand in a message. */
export function safeId(id: string): string {
  return /^[A-Za-z0-9_.:-]{1,80}$/.test(id) ? id : '[unprintable id]';
}

function failed(role: string, detail: string): MintOutcome {
  return { role, outcome: 'failed', detail };
}
