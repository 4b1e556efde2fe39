import { describe, expect, it } from 'vitest';
import { type HostUsers, judgeUid, uidsFrom } from '../../src/users/judge-uid.ts';

const host: HostUsers = { accounts: new Set([0, 33, 200_001]), running: new Set([0, 200_002]), folders: new Set([0, 200_003]) };

describe('the id of a user for a VM', () => {
  it.each([
    [0, 'reserved'],
    [65_534, 'reserved'],
    [65_535, 'reserved'],
    [4_294_967_295, 'reserved'],
    [200_001, 'account'],
    [200_002, 'running'],
    [200_003, 'left_behind'],
    [200_004, 'free'],
  ])('%d is %s', (uid, verdict) => {
    expect(judgeUid(uid, host)).toBe(verdict);
  });

  it('is sought in the whole range, each once, from anywhere in it', () => {
    expect(uidsFrom({ firstUid: 10, count: 4 }, 2)).toEqual([12, 13, 10, 11]);
    expect(uidsFrom({ firstUid: 10, count: 1 }, 0)).toEqual([10]);
  });
});
