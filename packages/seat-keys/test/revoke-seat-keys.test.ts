import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  describeStoreError,
  findAllowanceRefusal,
  formatKeyAddress,
  mintSeatKeys,
  REVOKE_OUTCOMES,
  renderOutcome,
  revokeSeatKeys,
  SeatKey,
  storeErrorOf,
} from '../src/index.ts';
import type { FakeIssuerAnswers, FakeStoreFaults } from '../src/testing/index.ts';
import { addressOf, stored, world } from './world.ts';

const targets = [{ role: 'coder', seatId: 's1' }, { role: 'writer' }, { role: 'release', seatId: 's2' }];

async function minted(faults: FakeStoreFaults = {}, answers: FakeIssuerAnswers = {}) {
  const scene = world(faults, answers);
  await mintSeatKeys(scene.mintRun(targets));
  scene.issuer.requests.length = 0;
  return { ...scene, has: (seatId: string) => scene.store.entries.has(formatKeyAddress(addressOf(seatId))) };
}

describe('revoking', () => {
  it('ends keys on the server and forgets them', async () => {
    const { context, issuer, store } = await minted();
    const result = await revokeSeatKeys({ ...context, targets });
    expect(result.map(renderOutcome)).toEqual(['coder: revoked', 'writer: no seat', 'release: revoked']);
    expect(issuer.live.size + store.entries.size).toBe(0);
    expect((await revokeSeatKeys({ ...context, targets })).map((each) => each.outcome)).toEqual(['not_stored', 'no_seat', 'not_stored']);
  });

  it.each([500, 403, 401, 'unreachable'] as const)('keeps the key when the server says %s, and goes on', async (status) => {
    const { context, has } = await minted({}, { onRevoke: (keyId) => (keyId === 'key-1' ? status : undefined) });
    const result = await revokeSeatKeys({ ...context, targets });
    expect(result.map((each) => each.outcome)).toEqual(['failed', 'no_seat', 'revoked']);
    expect([has('s1'), has('s2')]).toEqual([true, false]);
  });

  it('takes 404 for success and says so', async () => {
    const { context, has } = await minted({}, { onRevoke: () => 404 });
    expect((await revokeSeatKeys({ ...context, targets }))[0]).toEqual({
      role: 'coder',
      outcome: 'revoked',
      detail: 'it was already gone there',
    });
    expect(has('s1')).toBe(false);
  });

  it('sends nothing for a record without an id, and keeps it', async () => {
    const { context, store, issuer } = world();
    await store.write(addressOf('s1'), stored('s1'));
    const [first] = await revokeSeatKeys({ ...context, targets });
    expect(first).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('by hand') });
    expect(issuer.requests).toEqual([]);
    expect(store.entries.size).toBe(1);
  });

  it('fails what it cannot read or remove, each in its own words', async () => {
    const unreadable = world({ onRead: () => ({ fault: 'locked' }) });
    expect((await revokeSeatKeys({ ...unreadable.context, targets }))[0]?.detail).toContain('could not be read');
    const stuck = await minted({ onClear: ({ seatId }) => (seatId === 's1' ? { fault: 'io', systemCode: 'EROFS' } : undefined) });
    expect((await revokeSeatKeys({ ...stuck.context, targets }))[0]?.detail).toMatch(/revoked on the server, but.*EROFS/);
  });

  it('fails every role when the store cannot be opened', async () => {
    const { context, issuer } = world();
    const openStore = () => Promise.reject(Object.assign(new Error('x'), { code: 'EACCES' }));
    expect((await revokeSeatKeys({ ...context, openStore, targets })).map((each) => each.outcome)).toEqual(['failed', 'failed', 'failed']);
    expect(issuer.requests).toEqual([]);
  });

  it('changes nothing in a dry run', async () => {
    const { context, issuer, store } = await minted();
    const result = await revokeSeatKeys({ ...context, targets, dryRun: true });
    expect(result.map(renderOutcome)).toEqual(['coder: revoked (dry run)', 'writer: no seat', 'release: revoked (dry run)']);
    expect([issuer.requests.length, issuer.live.size, store.entries.size]).toEqual([0, 2, 2]);
  });
});

describe("a store's failure", () => {
  it('is described of fixed words, exit code and system code alone', () => {
    expect(describeStoreError({ fault: 'locked', exitCode: 36 })).toMatch(/unlock the keychain first \(exit code 36\)$/);
    expect(describeStoreError({ fault: 'io', systemCode: 'not a code -w S3CR3T' })).not.toContain('S3CR3T');
  });

  it.each([
    [Object.assign(new Error('S3CR3T'), { code: 'ENOENT' }), { fault: 'io', systemCode: 'ENOENT' }],
    [Object.assign(new Error('S3CR3T'), { code: 'EPERM' }), { fault: 'denied', systemCode: 'EPERM' }],
    [
      { fault: 'locked', exitCode: 3 },
      { fault: 'locked', exitCode: 3 },
    ],
    [{ fault: 'S3CR3T', exitCode: 1.5, code: 'S3CR3T' }, { fault: 'unknown' }],
    ['S3CR3T', { fault: 'unknown' }],
    [undefined, { fault: 'unknown' }],
  ])('is read of %j without its text', (thrown, expected) => {
    expect(storeErrorOf(thrown)).toEqual(expected);
  });
});

describe('a seat key', () => {
  it('prints as a fixed word in text, JSON, inspection and spread', () => {
    const key = new SeatKey('S3CR3T');
    expect(
      [String(key), `${key}`, JSON.stringify({ key }), inspect(key, { showHidden: true, depth: 9 }), JSON.stringify({ ...key })].join(),
    ).not.toContain('S3CR3T');
    expect(key.reveal()).toBe('S3CR3T');
  });
});

describe('a used-up allowance', () => {
  const marker = 'allowance exhausted';
  it.each([
    ['a result flagged as an error', `{"type":"result","is_error":true,"result":"402 ${marker}"}`, true],
    [
      'a message flagged as an API error',
      `{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"text":"${marker}"}]}}`,
      true,
    ],
    ['ordinary text of the agent', `{"type":"assistant","message":{"content":[{"text":"${marker}"}]}}`, false],
    ['a result that is no error', `{"type":"result","is_error":false,"result":"${marker}"}`, false],
    ['output of a tool', `{"type":"user","tool_use_result":"${marker}","is_error":true}`, false],
    ['another error', '{"type":"result","is_error":true,"result":"500"}', false],
    ['no JSON', `error: ${marker}`, false],
    ['JSON that is no object', `["${marker}"]`, false],
  ])('%s', (_, line, expected) => {
    expect(findAllowanceRefusal(['', line, '{"torn'], marker)).toBe(expected);
  });
});

describe('what others can see', () => {
  it('is fixed: the outcomes', () => {
    expect(REVOKE_OUTCOMES).toEqual(['revoked', 'not_stored', 'no_seat', 'failed']);
  });
});
