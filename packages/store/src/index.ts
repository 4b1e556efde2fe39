export type {
  BlobRange,
  BlobStore,
  BlobVerdict,
  ListedBlob,
  OpenBlob,
  PutOptions,
  PutResult,
} from './blobs/blob-store.ts';
export { type FileBlobStore, INCOMING_GRACE_MS, openFileBlobStore, type SweepResult } from './blobs/file-blob-store.ts';
export { initialiseBlobStore } from './blobs/store-marker.ts';
export { type ConnectedDatabase, type ConnectOptions, connectDatabase } from './migrate/connect-database.ts';
export { type DatabasePlace, pinDatabaseUrl, readDatabasePlace } from './migrate/database-place.ts';
export { type DatabaseContents, inspectDatabase } from './migrate/inspect-database.ts';
export { type MigrateOptions, type MigrateResult, migrateDatabase } from './migrate/migrate-database.ts';
export type { MigrationRefusal } from './migrate/plan-migrations.ts';
export {
  type AlsoWrite,
  type AttemptKey,
  type Database,
  type DatabaseFault,
  databaseFault,
  type EndedAttempt,
  EVENTS_CHANNEL,
  inTransaction,
  LOGS_CHANNEL,
  type MissionRow,
  type MissionStoreOptions,
  type NewMission,
  PostgresMissionStore,
  type RecordedEvents,
  readMission,
  TRANSACTION_TRIES,
  type Transaction,
} from './missions/index.ts';
export { type DirectoryLock, lockDirectory } from './postgres/directory-lock.ts';
export type { PostgresExit } from './postgres/launch-server.ts';
export {
  connectionUrl,
  type PostgresConnection,
  type PostgresLogger,
  type RunningPostgres,
  type StartPostgresOptions,
  startPostgres,
} from './postgres/start-postgres.ts';
export { startWakeups, WAKEUP_EXPIRES_S, type WakeupConnection, type WakeupOptions, type Wakeups } from './queue/wakeups.ts';
export type { AttemptDemand, MissionBase } from './schema.ts';
export * as tables from './schema.ts';
