export { type Database, EVENTS_CHANNEL, LOGS_CHANNEL, type Transaction } from './database.ts';
export { type DatabaseFault, databaseFault } from './database-fault.ts';
export { inTransaction, TRANSACTION_TRIES } from './in-transaction.ts';
export { type MissionRow, readMission } from './mission-rows.ts';
export {
  type AlsoWrite,
  type AttemptKey,
  type EndedAttempt,
  type MissionStoreOptions,
  type NewMission,
  PostgresMissionStore,
  type RecordedEvents,
} from './mission-store.ts';
