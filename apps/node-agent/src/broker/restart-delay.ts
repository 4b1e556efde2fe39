/** A broker that lived this long has started well, in `ms`. */
export const BROKER_SETTLED_MS = 10_000;
const FIRST_DELAY_MS = 100;
export const BROKER_RESTART_MAX_MS = 5_000;

/** Time until a broker is started again, in `ms`, by how often in a row it has ended before it had settled. */
export function restartDelayMs(earlyEnds: number): number {
  return Math.min(BROKER_RESTART_MAX_MS, FIRST_DELAY_MS * 2 ** Math.min(earlyEnds, 10));
}
