import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type * as schema from '../schema.ts';

/** The database of the product, or a transaction in it. */
export type Database = NodePgDatabase<typeof schema>;
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0];

/** Channel on which a committed change of a mission's events is told; the payload is the mission id. */
export const EVENTS_CHANNEL = 'firecrew_events';
/** Channel on which new log bytes are told; the payload is the mission id. */
export const LOGS_CHANNEL = 'firecrew_logs';
