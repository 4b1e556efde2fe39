import { CodedError } from '@firecrew/base';
import type { LinkStream } from '@firecrew/link';

/** Time for a request that does no work, in `ms`. */
export const CALL_TIMEOUT_MS = 20_000;
/** What the host waits beyond the guest's own time limit, in `ms`, so that the guest's fires first. */
export const OUTER_GRACE_MS = 30_000;
/** Time without a byte after which a transfer is given up, in `ms`. */
export const TRANSFER_IDLE_MS = 120_000;
/** Longest time a timer holds, in `ms`. */
export const MAX_TIMER_MS = 2_147_483_647;

/** The host's deadline for work that the guest limits to `innerMs`; never below it, and never wrapped. */
export function outerDeadlineMs(innerMs: number): number {
  return Math.min(innerMs + OUTER_GRACE_MS, MAX_TIMER_MS);
}

/** Runs a request on its stream; the stream is reset when it takes longer, or fails. Throws `guest_timeout`. */
export async function withDeadline<Value>(stream: LinkStream, request: string, ms: number, run: () => Promise<Value>): Promise<Value> {
  let late: CodedError | undefined;
  const timer = setTimeout(() => {
    late = new CodedError('guest_timeout', `The guest did not finish "${request}" within ${ms} ms.`, {
      id: request,
      action: 'The work may still run in the guest; ask for its state, or destroy the VM.',
    });
    stream.reset('deadline');
  }, ms);
  try {
    return await run();
  } catch (error) {
    stream.destroy();
    throw late ?? error;
  } finally {
    clearTimeout(timer);
  }
}
