export {
  type AlsoWrite,
  type AttemptKey,
  type Database,
  EVENTS_CHANNEL,
  LOGS_CHANNEL,
  type MissionRow,
  type MissionStoreOptions,
  type NewMission,
  PostgresMissionStore,
  type RecordedEvents,
  readMission,
  type Transaction,
} from './missions/index.ts';
export type { AttemptDemand, MissionBase } from './schema.ts';
export * as tables from './schema.ts';
