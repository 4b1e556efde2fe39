/** Bytes of a file that an answer holds, both ends included, or that there are none such. */
export type RangeVerdict =
  | { readonly verdict: 'whole' }
  | { readonly verdict: 'part'; readonly first: number; readonly last: number }
  | { readonly verdict: 'refused' };

const RANGE = /^bytes=(0|[1-9]\d{0,15})-(0|[1-9]\d{0,15})?$/;

/**
 * Reads a `Range` header (RFC 9110, 14.2) for a file of `sizeBytes`. One part with a beginning is what a transfer goes on with; several
 * parts, parts from the end and what begins behind the end are refused.
 */
export function decideRange(header: string | undefined, sizeBytes: number): RangeVerdict {
  if (header === undefined) return { verdict: 'whole' };
  const match = RANGE.exec(header);
  if (match === null) return { verdict: 'refused' };
  const first = Number(match[1]);
  const last = Math.min(match[2] === undefined ? sizeBytes - 1 : Number(match[2]), sizeBytes - 1);
  return first > last ? { verdict: 'refused' } : { verdict: 'part', first, last };
}
