export { MemoryMissionStore } from './memory-mission-store.ts';
export { type MissionStoreCase, type MissionStoreFixture, missionStoreCases } from './mission-store-cases.ts';
