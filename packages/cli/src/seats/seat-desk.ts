import { EnvironmentKeyStore, LayeredKeyStore } from '@firecrew/key-store';
import type { SeatView, Whoami } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import type { KeyAddress, KeyStore, SeatTarget } from '@firecrew/seat-keys';
import { type CommandContext, type Connection, settingsOf } from '../commands/context.ts';
import { keptKeys, missingTool } from './kept-keys.ts';

/** The interactive role: it works under the workspace's own key, and no seat is linked for it. */
export const PAIRING_ROLE = 'pairing';

/** What commands about seats work with: who calls, the seats of the workspace, and where this home keeps keys. */
export interface SeatDesk {
  readonly client: FirecrewClient;
  readonly self: Whoami;
  readonly seats: readonly SeatView[];
  readonly store: KeyStore;
  /** The server in the address of a key: the id of its home, which stays while its port changes. */
  readonly serverHost: string;
  readonly workspace: string;
}

/** Asks the server for all of it. */
export async function openSeatDesk(context: CommandContext, { client, home }: Connection): Promise<SeatDesk> {
  const self = await client.whoami();
  const place = { serverHost: home.homeId, workspace: self.workspace.name };
  const settings = settingsOf(context, home);
  const missing = missingTool(context.env, settings);
  if (missing !== undefined) context.out.note(missing);
  const kept = keptKeys(context.env, home.paths, settings);
  const store = new LayeredKeyStore(new EnvironmentKeyStore({ env: context.env, ...place }), kept);
  return { client, self, seats: await client.seats(), store, ...place };
}

/** The address of a seat's key. */
export function addressOfSeat({ serverHost, workspace }: SeatDesk, seatId: string): KeyAddress {
  return { serverHost, workspace, seatId };
}

/** The seats of the roles that were named, or of all; one that is not linked counts only where `unlinkedToo`. */
export function targetsOf(seats: readonly SeatView[], roles: readonly string[], unlinkedToo: boolean): SeatTarget[] {
  const usable = seats.filter((seat) => seat.linked || unlinkedToo);
  const wanted = roles.length === 0 ? usable.map((seat) => seat.role) : [...new Set(roles)];
  return wanted.map((role) => {
    const seat = usable.find((item) => item.role === role);
    return seat === undefined ? { role } : { role, seatId: seat.id };
  });
}
