import { CodedError } from '@firecrew/base';
import { FirecrewApiError, type FirecrewClient } from '@firecrew/sdk';
import {
  explainReason,
  type FallbackPolicy,
  noteVerified,
  type Resolution,
  resolveSeatKey,
  SeatKey,
  type StoreRead,
} from '@firecrew/seat-keys';
import type { CommandContext, Connection } from '../commands/context.ts';
import { addressOfSeat, openSeatDesk, PAIRING_ROLE, type SeatDesk } from './seat-desk.ts';

/** The client that a mission is made with, and what to tell of it. */
export interface ChosenSeat {
  readonly client: FirecrewClient;
  readonly note: string;
}

/**
 * The client of a role: under its seat's own key, or where `fallback` allows it under the workspace's, with the reason. A stored key is tried
 * before it is used, since one that is stored need not be accepted. Throws `seat_refused` with the reason otherwise.
 */
export async function chooseSeat(
  context: CommandContext,
  connection: Connection,
  wish: { readonly role: string; readonly fallback: FallbackPolicy },
): Promise<ChosenSeat> {
  const desk = await openSeatDesk(context, connection);
  const seat = desk.seats.find((item) => item.role === wish.role && item.linked);
  const stored = seat === undefined ? undefined : await desk.store.read(addressOfSeat(desk, seat.id));
  const resolve = (rejected: boolean): Resolution =>
    resolveSeatKey({
      role: wish.role,
      mayHoldKey: wish.role !== PAIRING_ROLE,
      ...(seat === undefined ? {} : { seatId: seat.id }),
      ...(stored === undefined ? {} : { stored }),
      rejected,
      workspaceKey: new SeatKey(connection.home.token),
      fallback: wish.fallback,
    });
  const first = resolve(false);
  if (first.kind !== 'seat') return settle(first, desk, wish.role);
  const client = connection.as(first.key.reveal());
  if (await isAccepted(client, first.seatId)) {
    await noteAccepted(desk, first.seatId, stored);
    return { client, note: `works under the seat of the role ${wish.role} (${first.seatId})` };
  }
  return settle(resolve(true), desk, wish.role);
}

/** Whether the server takes a key for that of the seat, or of any seat where none is named. */
export async function isAccepted(client: Pick<FirecrewClient, 'whoami'>, seatId?: string): Promise<boolean> {
  try {
    const { seat } = await client.whoami();
    return seat !== null && (seatId === undefined || seat.id === seatId);
  } catch (error) {
    if (error instanceof FirecrewApiError && error.status === 401) return false;
    throw error;
  }
}

/** Keeps when a key was last accepted. A store that is read alone keeps nothing, and that is no fault. */
export async function noteAccepted(desk: SeatDesk, seatId: string, stored: StoreRead | undefined): Promise<void> {
  const keyId = stored?.status === 'found' ? stored.record.keyId : undefined;
  if (keyId !== undefined) await noteVerified(desk.store, addressOfSeat(desk, seatId), keyId, new Date().toISOString());
}

function settle(resolution: Resolution, desk: SeatDesk, role: string): ChosenSeat {
  if (resolution.kind === 'seat') throw new TypeError('a seat whose key is used is no fallback');
  const why = explainReason(resolution, { role, viewer: desk.self.mayManageSeats ? 'administrator' : 'member' });
  if (resolution.kind === 'workspace')
    return { client: desk.client, note: `works under the workspace's key (${resolution.reason}). ${why}` };
  throw new CodedError('seat_refused', `nothing was started under the role ${role} (${resolution.reason}). ${why}`, {
    id: role,
    action: 'Do that, or let the workspace\'s key stand in with "seatFallback" in config.json.',
  });
}
