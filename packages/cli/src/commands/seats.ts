import { hostname } from 'node:os';
import type { SeatRevoked, SeatView, Whoami } from '@firecrew/protocol';
import {
  describeStoreError,
  explainReason,
  type MintRun,
  mintSeatKeys,
  renderOutcome,
  revokeSeatKeys,
  rotateSeatKeys,
  type StoredKey,
  type StoreRead,
} from '@firecrew/seat-keys';
import { EXIT, UsageError } from '../exit-codes.ts';
import { openIssuer } from '../issuers/open-issuer.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';
import { isAccepted, noteAccepted } from '../seats/choose-seat.ts';
import { renderUse } from '../seats/seat-budget.ts';
import { addressOfSeat, openSeatDesk, PAIRING_ROLE, type SeatDesk, targetsOf } from '../seats/seat-desk.ts';
import { type CommandContext, type Connection, settingsOf } from './context.ts';
import { withServer } from './missions.ts';

/** One line of what became of a role. */
type Outcome = { readonly role: string; readonly outcome: string; readonly detail?: string };

/** `firecrew seat list` */
export async function seatListCommand(context: CommandContext, json: boolean): Promise<number> {
  return await withServer(context, async (connection) => {
    const desk = await openSeatDesk(context, connection);
    const stored = await Promise.all(desk.seats.map(async (seat) => describeRead(await desk.store.read(addressOfSeat(desk, seat.id)))));
    if (json) context.out.line(JSON.stringify(desk.seats.map((seat, at) => ({ ...seat, stored: stored[at] }))));
    else for (const line of renderSeats(desk.seats, stored)) context.out.line(line);
    return EXIT.completed;
  });
}

/** Seats as a table. */
export function renderSeats(seats: readonly SeatView[], stored: readonly string[]): string[] {
  if (seats.length === 0) return ['no seats yet; link one with: firecrew seat link ROLE'];
  const rows = seats.map((seat, at) => [
    seat.role,
    seat.id,
    seat.linked ? 'linked' : 'unlinked',
    `${seat.turns} of ${seat.maxTurns}`,
    String(seat.keys.length),
    stored[at] ?? '',
    renderUse(seat),
  ]);
  return renderTable(['role', 'seat', 'state', 'turns', 'live keys', 'key stored here', 'used'], rows);
}

/** `firecrew seat unlink ROLE` */
export async function seatUnlinkCommand(
  context: CommandContext,
  role: string,
  options: { readonly dryRun: boolean; readonly json: boolean },
): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const seat = (await client.seats()).find((item) => item.role === role);
    if (seat === undefined)
      throw new UsageError('usage_wrong', `there is no seat of the role ${cleanLine(role, 40)}`, {
        id: role,
        action: 'List seats with: firecrew seat list',
      });
    if (options.dryRun) {
      if (options.json) context.out.line(JSON.stringify({ id: seat.id, dryRun: true, keys: seat.keys.length, turns: seat.turns }));
      else context.out.line(`${role}: ${seat.keys.length} live keys would be revoked and ${seat.turns} running turns ended (dry run)`);
      return EXIT.completed;
    }
    const done = await client.unlinkSeat(seat.id);
    if (options.json) context.out.line(JSON.stringify(done));
    else context.out.line(`seat ${done.id} is unlinked: its keys are revoked${endedMissions(done)}`);
    return EXIT.completed;
  });
}

/** What `mint`, `rotate` and `revoke` are told. */
export interface KeyOptions {
  readonly roles: readonly string[];
  readonly dryRun: boolean;
  readonly json: boolean;
}

/** `firecrew seat mint [ROLE...]` */
export async function seatMintCommand(context: CommandContext, options: KeyOptions): Promise<number> {
  return await withKeys(context, options, false, mintSeatKeys);
}

/** `firecrew seat rotate [ROLE...]` */
export async function seatRotateCommand(context: CommandContext, options: KeyOptions): Promise<number> {
  return await withKeys(context, options, false, rotateSeatKeys);
}

/** `firecrew seat revoke ROLE...` */
export async function seatRevokeCommand(context: CommandContext, options: KeyOptions): Promise<number> {
  return await withKeys(context, options, true, revokeSeatKeys);
}

/** `firecrew seat whoami [ROLE]`: whom the token of this home, or the key of a role, stands for. */
export async function seatWhoamiCommand(context: CommandContext, role: string | undefined, json: boolean): Promise<number> {
  return await withServer(context, async (connection) => {
    const desk = await openSeatDesk(context, connection);
    if (role === undefined) {
      context.out.line(json ? JSON.stringify(desk.self) : renderWhoami(desk.self));
      return EXIT.completed;
    }
    const { reason, self, stored } = await askAs(desk, connection, role);
    const said = stored === undefined ? undefined : await askIssuer(context, desk, connection, stored);
    if (json)
      context.out.line(JSON.stringify({ ...(self ?? { role, reason: reason?.reason }), ...(said === undefined ? {} : { issuer: said }) }));
    else if (self !== undefined) context.out.line(renderWhoami(self));
    if (!json && said !== undefined) context.out.line(renderIssuer(said));
    if (reason === undefined) return EXIT.completed;
    context.out.note(explainReason(reason, { role, viewer: desk.self.mayManageSeats ? 'administrator' : 'member' }));
    return EXIT.failed;
  });
}

async function askAs(
  desk: SeatDesk,
  connection: Connection,
  role: string,
): Promise<{ self?: Whoami; reason?: Parameters<typeof explainReason>[0]; stored?: StoredKey }> {
  const seat = desk.seats.find((item) => item.role === role && item.linked);
  if (seat === undefined) return { reason: { reason: role === PAIRING_ROLE ? 'role_never_seated' : 'seat_not_linked' } };
  const stored = await desk.store.read(addressOfSeat(desk, seat.id));
  if (stored.status === 'absent') return { reason: { reason: 'no_key_stored' } };
  if (stored.status === 'unreadable') return { reason: { reason: 'store_unreadable', storeError: stored.error } };
  const client = connection.as(stored.record.key.reveal());
  if (!(await isAccepted(client, seat.id))) return { reason: { reason: 'key_rejected' }, stored: stored.record };
  await noteAccepted(desk, seat.id, stored);
  return { self: await client.whoami(), stored: stored.record };
}

/** What the issuer of a key says of it, where that is another than the server; `accepts` is null where it did not say. */
interface IssuerSays {
  readonly name: string;
  readonly accepts: boolean | null;
}

async function askIssuer(
  context: CommandContext,
  desk: SeatDesk,
  connection: Connection,
  stored: StoredKey,
): Promise<IssuerSays | undefined> {
  if (stored.issuer === undefined) return undefined;
  const none = { name: stored.issuer, accepts: null };
  const issuer = await openIssuer(settingsOf(context, connection.home), { desk, connection, env: context.env });
  if (issuer.name !== stored.issuer || issuer.verify === undefined) return none;
  const { status } = await issuer.verify(stored.key, stored.keyId);
  return status === 404 ? { ...none, accepts: false } : { ...none, accepts: typeof status === 'number' && status < 300 ? true : null };
}

function renderIssuer({ name, accepts }: IssuerSays): string {
  const says = accepts === null ? 'did not say whether it accepts it' : accepts ? 'accepts it' : 'does not accept it';
  return `the key was made by the issuer ${cleanLine(name, 40)}, which ${says}`;
}

function renderWhoami({ name, role, seat, tokenId, workspace, mayManageSeats }: Whoami): string {
  const who = seat === null ? `${role} "${cleanLine(name, 60)}"` : `the seat of the role ${seat.role} (${seat.id})`;
  return `${who} in the workspace ${cleanLine(workspace.name, 60)}, by ${tokenId}; ${mayManageSeats ? 'may' : 'may not'} manage seats`;
}

async function withKeys(
  context: CommandContext,
  options: KeyOptions,
  unlinkedToo: boolean,
  work: (run: MintRun) => Promise<readonly Outcome[]>,
): Promise<number> {
  return await withServer(context, async (connection) => {
    const desk = await openSeatDesk(context, connection);
    const outcomes = await work({
      serverHost: desk.serverHost,
      workspace: desk.workspace,
      workspaceId: desk.self.workspace.id,
      openStore: async () => desk.store,
      issuer: await openIssuer(settingsOf(context, connection.home), { desk, connection, env: context.env }),
      dryRun: options.dryRun,
      targets: targetsOf(desk.seats, options.roles, unlinkedToo),
      nodeName: hostname(),
      now: new Date().toISOString(),
    });
    if (options.json) context.out.line(JSON.stringify({ outcomes }));
    else if (outcomes.length === 0) context.out.line('no seats are linked; link one with: firecrew seat link ROLE');
    else for (const outcome of outcomes) context.out.line(cleanLine(renderOutcome(outcome), 600));
    return exitOf(outcomes, options.roles);
  });
}

/** 1 where something failed, was forbidden, or was asked of a role by name that has no seat. */
export function exitOf(outcomes: readonly Outcome[], named: readonly string[]): number {
  const isBad = ({ role, outcome }: Outcome): boolean =>
    outcome === 'failed' || outcome === 'forbidden' || (outcome === 'no_seat' && named.includes(role));
  return outcomes.some(isBad) ? EXIT.failed : EXIT.completed;
}

function describeRead(read: StoreRead): string {
  if (read.status === 'absent') return 'no';
  if (read.status === 'unreadable') return `unreadable: ${describeStoreError(read.error)}`;
  const { keyId, lastVerifiedAt, issuer, expiresAt } = read.record;
  const minute = (time: string): string => time.slice(0, 16).replace('T', ' ');
  return [
    keyId ?? 'yes',
    ...(issuer === undefined ? [] : [`of ${issuer}`]),
    ...(lastVerifiedAt === undefined ? [] : [`accepted ${minute(lastVerifiedAt)}`]),
    ...(expiresAt === undefined ? [] : [`ends ${minute(expiresAt)}`]),
  ].join(', ');
}

function endedMissions({ missions }: SeatRevoked): string {
  return missions.length === 0 ? '' : `, and these missions are ended: ${missions.join(', ')}`;
}
