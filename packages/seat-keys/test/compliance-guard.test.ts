import { describe, expect, it } from 'vitest';
import type { KeyAddress, StoredKey } from '../src/index.ts';
import { FakeKeyStore, keyStoreCases } from '../src/testing/index.ts';

class Forgetful extends FakeKeyStore {
  override async write(): Promise<{ status: 'done' }> {
    return { status: 'done' };
  }
}
class Careless extends FakeKeyStore {
  override read(address: KeyAddress) {
    return super.read({ ...address, workspace: 'any' });
  }
  override write(address: KeyAddress, record: StoredKey) {
    return super.write({ ...address, workspace: 'any' }, record);
  }
}
class Hoarding extends FakeKeyStore {
  override async clear(): Promise<{ status: 'done' }> {
    return { status: 'done' };
  }
}

describe('the compliance suite of key stores', () => {
  it.each([
    ['forgets writes', () => new Forgetful()],
    ['mixes workspaces', () => new Careless()],
    ['keeps cleared keys', () => new Hoarding()],
  ])('fails a store that %s', async (_, make) => {
    const results = await Promise.allSettled(keyStoreCases.map(({ run }) => run(make())));
    expect(results.some((result) => result.status === 'rejected')).toBe(true);
  });
});
