import { codeOf } from '@firecrew/base';
import { DrizzleQueryError } from 'drizzle-orm/errors';

/** What kept a database from doing what a statement asked. */
export type DatabaseFault = 'disk_full' | 'unavailable';

/** Causes of a cause that are looked at. */
const MAX_CAUSES = 8;
const DISK_FULL_STATE = '53100';
/** SQLSTATE of connections that broke, of servers that end, start or crashed, and of too many connections. */
const UNAVAILABLE_STATES = /^(?:08...|57P0[1235]|53300)$/;

/** Finds the fault of the database in what a statement threw; undefined where the statement itself, or something else, is at fault. */
export function databaseFault(error: unknown): DatabaseFault | undefined {
  let one: unknown = error;
  let inStatement = false;
  for (let depth = 0; depth < MAX_CAUSES && one instanceof Error; depth += 1, one = one.cause) {
    const code = codeOf(one) ?? '';
    if (code === DISK_FULL_STATE) return 'disk_full';
    if (UNAVAILABLE_STATES.test(code)) return 'unavailable';
    // What the server answers has a severity; an error without one is the client's own, which found no server at the other end.
    if (inStatement && !('severity' in one) && !(one instanceof TypeError)) return 'unavailable';
    inStatement = one instanceof DrizzleQueryError;
  }
  return undefined;
}
