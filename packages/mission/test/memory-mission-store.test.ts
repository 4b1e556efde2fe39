import { describe, it } from 'vitest';
import { MemoryMissionStore, missionStoreCases } from '../src/testing/index.ts';
import { contextWithIds, draftMission } from './solo-planner.ts';

describe('the store in memory', () => {
  it.each(missionStoreCases.map((item) => [item.name, item] as const))('%s', async (_name, item) => {
    const store = new MemoryMissionStore(contextWithIds());
    store.add(draftMission(2));
    await item.run({ store, missionId: 'm', nodeId: 'nod', unknownMissionId: 'other' });
  });
});
