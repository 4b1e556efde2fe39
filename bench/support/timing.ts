/** The middle of some numbers. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value that a share of the numbers does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** How long something takes, in `ms`. */
export async function timed(run: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await run();
  return performance.now() - from;
}

/** Runs two things in turn, so that what else the machine does falls on both; gives the shortest time of each, in `ms`. */
export async function bestInTurn(
  rounds: number,
  ours: () => Promise<number>,
  peer: () => Promise<number>,
): Promise<{ ours: number; peer: number }> {
  const best = { ours: Number.POSITIVE_INFINITY, peer: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round += 1) {
    best.peer = Math.min(best.peer, await peer());
    best.ours = Math.min(best.ours, await ours());
  }
  return best;
}

/** How often something runs in a second, over at least half a second. */
export function perSecond(run: () => void): number {
  const warm = performance.now();
  while (performance.now() - warm < 150) run();
  let count = 0;
  const from = performance.now();
  while (performance.now() - from < 500) {
    for (let index = 0; index < 100; index += 1) run();
    count += 100;
  }
  return (count * 1000) / (performance.now() - from);
}
