import { CodedError } from '@firecrew/base';

/** Shortest refill of a bucket, in `ms`: below a millisecond of it a limiter can stall for ever. */
export const MIN_REFILL_MS = 100;
/** Smallest bucket of bytes of a disk: one request may have as many. */
export const MIN_BANDWIDTH_BYTES = 1024 * 1024;
/** Smallest bucket of the console, in bytes. */
export const MIN_CONSOLE_BYTES = 4096;

/** One bucket: `size` tokens (bytes or operations) come back in `refillMs`; `burst` more are there once, for the boot. */
export interface TokenBucket {
  readonly size: number;
  readonly refillMs: number;
  readonly burst?: number | undefined;
}

/** Limits of one disk. */
export interface DiskLimits {
  readonly bandwidth?: TokenBucket | undefined;
  readonly operations?: TokenBucket | undefined;
}

/** The console's: enough for a boot at once, then little. What is above is dropped, and the guest does not wait. */
export const CONSOLE_LIMIT: TokenBucket = { size: 65_536, refillMs: 1000, burst: 262_144 };

/** A bucket as the API takes it. Throws `bad_rate_limit`: a zero means "no limit" there, and a small bucket starves its device. */
export function tokenBucket(name: string, bucket: TokenBucket, minSize: number): Readonly<Record<string, number>> {
  const { size, refillMs, burst } = bucket;
  if (!Number.isSafeInteger(size) || size < minSize) throw badLimit(name, `its size ${size} is less than ${minSize}`);
  if (!Number.isSafeInteger(refillMs) || refillMs < MIN_REFILL_MS)
    throw badLimit(name, `its refill of ${refillMs} ms is below ${MIN_REFILL_MS} ms`);
  if (burst !== undefined && (!Number.isSafeInteger(burst) || burst < 0)) throw badLimit(name, `its burst ${burst} is no number of tokens`);
  return { size, refill_time: refillMs, ...(burst === undefined ? {} : { one_time_burst: burst }) };
}

/** Limits of a disk as the API takes them; undefined for none. Throws `bad_rate_limit`. */
export function diskLimiter(limits: DiskLimits | undefined): Readonly<Record<string, unknown>> | undefined {
  const bandwidth = limits?.bandwidth;
  const operations = limits?.operations;
  if (bandwidth === undefined && operations === undefined) return undefined;
  return {
    ...(bandwidth === undefined ? {} : { bandwidth: tokenBucket('disk.bandwidth', bandwidth, MIN_BANDWIDTH_BYTES) }),
    ...(operations === undefined ? {} : { ops: tokenBucket('disk.operations', operations, 1) }),
  };
}

function badLimit(name: string, why: string): CodedError {
  return new CodedError('bad_rate_limit', `The rate limit ${name} cannot be used: ${why}.`, {
    id: name,
    action: 'Correct it in the configuration of the node, or leave it out for no limit.',
  });
}
