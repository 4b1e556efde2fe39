import { setTimeout as pause } from 'node:timers/promises';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { databaseFault } from './database-fault.ts';

/** How often a transaction is begun that the database ends each time in favour of another. */
export const TRANSACTION_TRIES = 5;
/** Longest pause before the next try, in `ms`, times the number of the try. */
const PAUSE_MS = 20;
/** Causes of a cause that are looked at. */
const MAX_CAUSES = 8;
/** SQLSTATE of transactions that were ended so that another goes on: could not serialize, deadlock. */
const ENDED_FOR_ANOTHER: readonly string[] = ['40001', '40P01'];

/**
 * Runs `work` in one transaction, and from its beginning again where the database ended that in favour of another one: nothing of it was kept
 * then. So `work` writes to the database alone. Throws what `work` throws, and `database_unavailable` where no connection became free.
 */
export async function inTransaction<S extends Record<string, unknown>, T>(
  db: NodePgDatabase<S>,
  work: (tx: Parameters<Parameters<NodePgDatabase<S>['transaction']>[0]>[0]) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    let hasBegun = false;
    try {
      return await db.transaction((tx) => {
        hasBegun = true;
        return work(tx);
      });
    } catch (error) {
      if (!hasBegun && databaseFault(error) === undefined)
        throw new CodedError('database_unavailable', `no transaction could be begun: ${messageOf(error)}`, {
          action: 'Try again in a moment; if it stays, look at the log of the database, and at its disk.',
          cause: error,
        });
      if (attempt === TRANSACTION_TRIES || !wasEndedForAnother(error)) throw error;
      await pause(Math.random() * PAUSE_MS * attempt);
    }
  }
}

function wasEndedForAnother(error: unknown): boolean {
  let one: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && one instanceof Error; depth += 1, one = one.cause)
    if (ENDED_FOR_ANOTHER.includes(codeOf(one) ?? '')) return true;
  return false;
}
