import { describe, expect, it } from 'vitest';
import { noteVerified } from '../src/index.ts';
import { addressOf, NOW, stored, world } from './world.ts';

const LATER = '2026-01-02T00:00:00.000Z';
const at = addressOf('s1');

async function seatWith(faults: Parameters<typeof world>[0] = {}) {
  const { store } = world(faults);
  store.entries.set('firecrew.example.com/team/s1', stored('s1', 'key-1'));
  const timeOf = async (): Promise<string | undefined> => {
    const read = await store.read(at);
    return read.status === 'found' ? read.record.lastVerifiedAt : undefined;
  };
  return { store, timeOf };
}

describe('that the server accepted a key', () => {
  it('is noted beside the key, and never set back', async () => {
    const { store, timeOf } = await seatWith();
    expect(await timeOf()).toBeUndefined();
    expect(await noteVerified(store, at, 'key-1', LATER)).toEqual({ status: 'noted' });
    expect(await noteVerified(store, at, 'key-1', NOW)).toEqual({ status: 'noted' });
    expect(await timeOf()).toBe(LATER);
  });

  it.each(['key-2', ''])('is not noted for the key %j, which is not the one that is stored', async (keyId) => {
    const { store, timeOf } = await seatWith();
    expect(await noteVerified(store, at, keyId, LATER)).toEqual({ status: 'other_key' });
    expect(await timeOf()).toBeUndefined();
    expect(await noteVerified(store, addressOf('s9'), 'key-1', LATER)).toEqual({ status: 'other_key' });
  });

  it.each([
    ['read', { onRead: () => ({ fault: 'locked' as const }) }],
    ['written', { onWrite: () => ({ fault: 'locked' as const }) }],
  ])('fails with the error of a store that cannot be %s', async (_what, faults) => {
    const { store } = await seatWith(faults);
    expect(await noteVerified(store, at, 'key-1', LATER)).toEqual({ status: 'failed', error: { fault: 'locked' } });
  });
});
