/** How many turns a seat allows at once, and how many run under it. */
export interface SeatRoom {
  readonly id: string;
  readonly role: string;
  readonly maxTurns: number;
  /** Attempts under the seat that have not ended: each holds a lease of it. */
  readonly held: number;
}

/** The answer to a turn whose seat has no lease left; it waits, as it waits for memory. */
export interface SeatBusy {
  readonly verdict: 'seat_busy';
  readonly transient: true;
  readonly message: string;
  readonly report: readonly string[];
}

/**
 * Undefined where one more turn may run under the seat. A seat that is not among those that are known has no room: what could not be read is
 * never a free seat.
 */
export function judgeSeat(seatId: string, room: SeatRoom | undefined): SeatBusy | undefined {
  if (room !== undefined && room.held < room.maxTurns) return undefined;
  const message =
    room === undefined
      ? `The seat ${seatId} is not linked, so nothing is started under it.`
      : `The seat of the role ${room.role} allows ${room.maxTurns} at once, and ${room.held} ${room.held === 1 ? 'turn runs' : 'turns run'} under it. The turn is queued until one of them ends.`;
  return { verdict: 'seat_busy', transient: true, message, report: [] };
}
