import { setTimeout } from 'node:timers/promises';
import { tables } from '@firecrew/store';
import { sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { placeTurns } from './place-turns.ts';
import { LeaseWatch } from './watch-leases.ts';

/** Period of the look at open leases: an eighth of the term, within these bounds. */
export const LEASE_SWEEP_MIN_MS = 500;
export const LEASE_SWEEP_MAX_MS = 10_000;
/** Period of a look at waiting turns, beside the wake-ups. */
export const PLACE_EVERY_MS = 5_000;
/** Period of a wake-up of every running mission: what a lost message would leave undone is done then. */
export const RECONCILE_EVERY_MS = 15_000;

/** Period of a look at the content of the policy file. */
export const POLICY_LOOK_EVERY_MS = 2_000;

/** The server's own periodic work. Each loop has one run at a time, and a failed one is repeated at its next turn. */
export function startLoops(context: ServerContext): { stop(): Promise<void> } {
  const leases = new LeaseWatch(context);
  const sweepEvery = Math.min(LEASE_SWEEP_MAX_MS, Math.max(LEASE_SWEEP_MIN_MS, Math.floor(context.config.lease.ttlMs / 8)));
  const loops = [
    startLoop(context, 'leases', sweepEvery, () => leases.sweep()),
    startLoop(context, 'placement', PLACE_EVERY_MS, () => placeTurns(context)),
    ...(context.config.policyFile === null
      ? []
      : [startLoop(context, 'policy', POLICY_LOOK_EVERY_MS, async () => void (await context.policy.reload()))]),
    startLoop(context, 'reconcile', RECONCILE_EVERY_MS, () => wakeRunning(context)),
  ];
  return {
    stop: async () => {
      await Promise.all(loops.map((stop) => stop()));
    },
  };
}

function startLoop(context: ServerContext, name: string, everyMs: number, work: () => Promise<void>): () => Promise<void> {
  const gone = new AbortController();
  const running = (async () => {
    while (!gone.signal.aborted) {
      await work().catch((error: unknown) => context.log.warn({ err: error, loop: name }, 'a loop failed and goes on'));
      await setTimeout(everyMs, undefined, { signal: gone.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    gone.abort();
    await running;
  };
}

async function wakeRunning(context: ServerContext): Promise<void> {
  const rows = await context.db.select({ id: tables.missions.id }).from(tables.missions).where(sql`${tables.missions.state} = 'running'`);
  for (const row of rows) await context.wake(row.id);
}
