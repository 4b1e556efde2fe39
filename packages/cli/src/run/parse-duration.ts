/** Longest duration the server takes, in ms: 7 days. */
export const DURATION_MAX_MS = 7 * 24 * 3600 * 1000;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `30m`, `1h30m` as ms; undefined for anything else, for nothing, and beyond {@link DURATION_MAX_MS}. A number needs its unit. */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d{1,9}(?:ms|s|m|h|d))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g)) total += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  return total >= 1 && total <= DURATION_MAX_MS ? total : undefined;
}
