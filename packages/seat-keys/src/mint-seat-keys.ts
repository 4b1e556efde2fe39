import type { Issuer, IssuerStatus, KeyAddress, KeyStore, MintReply, MintRequest, StoreChange, StoredKey, StoreRead } from './ports.ts';
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
  const { status } = await askSafely(() => issuer.askMintRight());
  if (status === 403) return 'no';
  return isSuccess(status) ? 'yes' : 'unknown';
}

async function mintOne(run: MintRun, store: KeyStore, target: SeatTarget): Promise<MintOutcome> {
  const { role, seatId } = target;
  if (seatId === undefined) return { role, outcome: 'no_seat' };
  const address = addressOf(run, seatId);
  const known = await readSafely(store, address);
  if (known.status === 'unreadable') return failed(role, `whether a key is stored could not be read: ${describeStoreError(known.error)}`);
  if (known.status === 'found') {
    const { expiresAt } = known.record;
    const isOver = expiresAt !== undefined && expiresAt <= run.now;
    return { role, outcome: 'already_stored', ...(isOver ? { detail: 'it has ended by itself: rotate it' } : {}) };
  }
  if (run.dryRun === true) return { role, outcome: 'minted', detail: 'dry run' };
  const minted = await mintKey(run, role, seatId);
  if (minted.status !== 'minted') return { role, outcome: minted.status, detail: minted.detail };
  const trouble = await storeMinted(run, store, seatId, minted);
  return trouble === undefined ? { role, outcome: 'minted' } : failed(role, trouble);
}

/** A key that the issuer has just made, or why there is none. */
export type Minted =
  | { readonly status: 'minted'; readonly key: SeatKey; readonly keyId: string; readonly expiresAt?: string }
  | { readonly status: 'forbidden' | 'failed'; readonly detail: string };

export async function mintKey(run: MintRun, role: string, seatId: string): Promise<Minted> {
  const request = { seatId, role, name: `firecrew ${run.nodeName} ${role}` };
  const reply = await askSafely(() => run.issuer.mint(request));
  return judgeReply(run.issuer, request, reply, reply.keyId);
}

/** What an answer with a new key is worth; `keyId` is the id that the key would be revoked by. */
export function judgeReply(issuer: Issuer, request: MintRequest, reply: MintReply, keyId: string | undefined): Minted {
  const who = describeIssuer(issuer);
  const none = (detail: string): Minted => ({ status: 'failed', detail });
  const look = `look there for a key called "${request.name}" and revoke it`;
  if (reply.status === 403) return { status: 'forbidden', detail: `${who} does not let this account mint seat keys` };
  if (reply.status === 'not_offered') return none(`${who} offers no key for this role; nothing was sent`);
  if (reply.status === 'unreachable') return none(`${who} gave no answer that counts; ${look}`);
  if (!isSuccess(reply.status)) return none(`${who} answered ${reply.status}`);
  const { key, expiresAt } = reply;
  if (key === undefined || key.reveal() === '') return none(`the answer of ${who} holds no key; ${look}`);
  if (keyId === undefined || keyId === '') {
    return none(
      `${who} gave a key without an id, which could never be revoked, so it was thrown away: A LIVE KEY called "${request.name}" EXISTS; revoke it there`,
    );
  }
  return { status: 'minted', key, keyId, ...(expiresAt === undefined ? {} : { expiresAt }) };
}

/** Why a stored key is none of this issuer's; undefined where it is. Its id means nothing to another one, or means another key. */
export function foreignKey(issuer: Issuer, record: StoredKey): string | undefined {
  if (record.issuer === issuer.name) return undefined;
  const whose = record.issuer === undefined ? 'the server itself' : `the issuer ${safeId(record.issuer)}`;
  return `the stored key was made by ${whose}, and here ${describeIssuer(issuer)} is asked: end it with the settings that it was minted with; it was kept`;
}

/** An issuer as it is called in a message. */
export function describeIssuer({ name }: Issuer): string {
  return name === undefined ? 'the server' : `the issuer ${safeId(name)}`;
}

/** What went wrong with a revocation, after "the server ...". */
export function describeStatus(status: IssuerStatus): string {
  if (status === 'not_offered') return 'has no way to end keys';
  return status === 'unreachable' ? 'gave no answer' : `answered ${status}`;
}

/** Stores a new key; one that cannot be stored is taken back, and what became of it is the answer. */
export async function storeMinted(
  run: MintRun,
  store: KeyStore,
  seatId: string,
  { key, keyId, expiresAt }: Extract<Minted, { status: 'minted' }>,
): Promise<string | undefined> {
  const { name } = run.issuer;
  const more = { ...(name === undefined ? {} : { issuer: name }), ...(expiresAt === undefined ? {} : { expiresAt }) };
  const record = { key, keyId, seatId, workspaceId: run.workspaceId, createdAt: run.now, ...more };
  const stored = await writeSafely(store, addressOf(run, seatId), record);
  return stored.status === 'done' ? undefined : await takeBack(run.issuer, keyId, stored.error);
}

/** The answer of an issuer; one that throws, by whatever text, gave none. */
export async function askSafely<Reply extends { readonly status: IssuerStatus }>(
  ask: () => Promise<Reply>,
): Promise<Reply | { readonly status: 'unreachable'; readonly key?: never; readonly keyId?: never; readonly expiresAt?: never }> {
  try {
    return await ask();
  } catch {
    return { status: 'unreachable' };
  }
}

export async function revokeSafely(issuer: Issuer, keyId: string, successor?: string): Promise<{ readonly status: IssuerStatus }> {
  return await askSafely(() => issuer.revoke(keyId, ...(successor === undefined ? [] : [{ successor }])));
}

async function takeBack(issuer: Issuer, keyId: string, error: StoreError): Promise<string> {
  const why = `the new key could not be stored: ${describeStoreError(error)}`;
  const { status } = await revokeSafely(issuer, keyId);
  if (isSuccess(status) || status === 404) return `${why}; it was taken back`;
  return `${why}; the key ${safeId(keyId)} IS STILL VALID AND HELD BY NOBODY: ${describeIssuer(issuer)} ${describeStatus(status)}; revoke it there`;
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

export function isSuccess(status: IssuerStatus): boolean {
  return typeof status === 'number' && status >= 200 && status < 300;
}

/** A server's id as it may stand in a message. */
export function safeId(id: string): string {
  return /^[A-Za-z0-9_.:-]{1,80}$/.test(id) ? id : '[unprintable id]';
}

function failed(role: string, detail: string): MintOutcome {
  return { role, outcome: 'failed', detail };
}
