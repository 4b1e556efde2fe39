import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeStoreError, type KeyAddress, SeatKey, type StoredKey } from '@firecrew/seat-keys';
import { FakeKeyStore, keyStoreCases } from '@firecrew/seat-keys/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EncryptedKeyStore, KeychainKeyStore, keychainProgram, SucceedingKeyStore } from '../src/index.ts';
import { type Mood, StandIn } from './stand-in.ts';

const SECRET = 'fcs_do-not-print-me-0123456789';
const here: KeyAddress = { serverHost: 'one.example.com', workspace: 'team', seatId: 'seat-1' };
const there: KeyAddress = { ...here, seatId: 'seat-2' };
const record = (key = SECRET): StoredKey => ({
  key: new SeatKey(key),
  workspaceId: 'wsp_1',
  seatId: 'seat-1',
  createdAt: '2026-01-01T00:00:00.000Z',
  keyId: 'key-1',
});

describe.each([
  ['linux', 'secret-tool'],
  ['darwin', 'security'],
] as const)('the keychain of %s', (platform, program) => {
  let tool: StandIn;
  let store: KeychainKeyStore;
  const storeOf = (timeoutMs = 30_000) => new KeychainKeyStore({ platform, env: tool.env, timeoutMs });
  beforeEach(() => {
    tool = new StandIn(program);
    store = storeOf();
  });
  afterEach(() => tool.remove());

  it(`is asked by ${program}`, () => expect(keychainProgram(platform)).toBe(program));

  it.each(keyStoreCases)('$name', ({ run }) => run(store));

  it.each<[Mood, string]>([
    ['dismissed', 'locked'],
    ['locked', 'locked'],
    ['no_service', 'service_missing'],
    ['denied', 'denied'],
    ['killed', 'helper_failed'],
    ['endless', 'helper_failed'],
    ['echoes', 'helper_failed'],
  ])('that is %s is %s: what is there is never absent, nothing is written, and nothing is forgotten', async (mood, fault) => {
    expect((await store.write(here, record())).status).toBe('done');
    tool.mood(mood);
    const read = await store.read(here);
    const written = await store.write(there, record('other'));
    const cleared = await store.clear(here);
    expect(read).toMatchObject({ status: 'unreadable', error: { fault } });
    expect(written).toMatchObject({ status: 'failed', error: { fault } });
    expect(cleared).toMatchObject({ status: 'failed', error: { fault } });
    for (const answer of [read, written, cleared]) {
      const { error } = answer as { error: Parameters<typeof describeStoreError>[0] };
      expect(`${JSON.stringify(answer)} ${describeStoreError(error)}`).not.toContain(SECRET);
    }
    tool.mood('open');
    expect((await store.read(here)).status).toBe('found');
    expect((await store.read(there)).status).toBe('absent');
  });

  it('that shows a prompt which nobody answers ends with the time it was given', async () => {
    await store.write(here, record());
    tool.mood('hangs');
    const impatient = storeOf(300);
    expect(await impatient.read(here)).toEqual({ status: 'unreadable', error: { fault: 'timed_out' } });
    expect(await impatient.write(here, record())).toEqual({ status: 'failed', error: { fault: 'timed_out' } });
    expect(await impatient.clear(here)).toEqual({ status: 'failed', error: { fault: 'timed_out' } });
  });

  it('whose tool is not installed is helper_missing, never absent', async () => {
    const without = new KeychainKeyStore({ platform, env: { PATH: join(tool.folder, 'nothing') } });
    expect(await without.read(here)).toEqual({ status: 'unreadable', error: { fault: 'helper_missing' } });
    expect(await without.write(here, record())).toEqual({ status: 'failed', error: { fault: 'helper_missing' } });
  });

  it('gets no secret as an argument and none of the environment of its caller', async () => {
    await store.write(here, record());
    await store.read(here);
    await store.clear(here);
    const calls = tool.calls();
    expect(calls.split('\n').length).toBeGreaterThan(3);
    expect(calls).not.toContain('of the caller');
    for (const form of [SECRET, Buffer.from(SECRET).toString('base64url').slice(0, -2), 'firecrew1.']) expect(calls).not.toContain(form);
  });

  it('counts as written only what it gives back', async () => {
    tool.mood('forgets');
    expect(await store.write(here, record())).toEqual({ status: 'failed', error: { fault: 'corrupt' } });
  });

  it.each<[string, (text: string) => string]>([
    ['cut', (text) => text.slice(0, -8)],
    ['empty', () => ''],
    ['of another format', (text) => text.replace('firecrew1', 'firecrew2')],
    ['something else', () => 'a password'],
  ])('says corrupt, never absent, of an entry that is %s', async (_what, damage) => {
    await store.write(here, record());
    tool.change(damage);
    expect(await store.read(here)).toEqual({ status: 'unreadable', error: { fault: 'corrupt' } });
  });

  it('does not use an entry that was put in the place of another', async () => {
    await store.write(here, record());
    await store.write(there, record('other'));
    const texts: string[] = [];
    tool.change((text) => {
      texts.push(text);
      return texts[0] ?? '';
    });
    expect((await store.read(here)).status).toBe('found');
    expect(await store.read(there)).toEqual({ status: 'unreadable', error: { fault: 'corrupt' } });
  });

  it('refuses an entry that its tool would cut, before the tool is asked', async () => {
    expect(await store.write(here, record('x'.repeat(4_096 * 2)))).toEqual({
      status: 'failed',
      error: { fault: 'io', systemCode: 'EFBIG' },
    });
    expect(tool.calls()).toBe('');
  });
});

describe('a system without a keychain that is known', () => {
  it('has none: helper_missing, never absent', async () => {
    const store = new KeychainKeyStore({ platform: 'aix', env: {} });
    expect(keychainProgram('aix')).toBeUndefined();
    expect(await store.read(here)).toEqual({ status: 'unreadable', error: { fault: 'helper_missing' } });
    expect(await store.clear(here)).toEqual({ status: 'failed', error: { fault: 'helper_missing' } });
  });
});

describe('a store in the place of an older one', () => {
  let folder: string;
  let old: EncryptedKeyStore;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'key-store-'));
    old = new EncryptedKeyStore(join(folder, 'keys'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it.each(keyStoreCases)('$name', ({ run }) => run(new SucceedingKeyStore(new FakeKeyStore(), old)));

  it('finds what the older one holds, and moves it with the next write', async () => {
    await old.write(here, record('of before'));
    const now = new FakeKeyStore();
    const both = new SucceedingKeyStore(now, old);
    const read = await both.read(here);
    expect(read.status === 'found' && read.record.key.reveal()).toBe('of before');
    expect((await both.write(here, record('newer'))).status).toBe('done');
    expect([(await old.read(here)).status, (await now.read(here)).status]).toEqual(['absent', 'found']);
  });

  it('does not pass over a newer one that could not be read, and says when the older one could not be', async () => {
    await old.write(here, record('of before'));
    const locked = new FakeKeyStore({ onRead: () => ({ fault: 'locked' }), onWrite: () => ({ fault: 'locked' }) });
    const both = new SucceedingKeyStore(locked, old);
    expect((await both.read(here)).status).toBe('unreadable');
    expect((await both.write(here, record())).status).toBe('failed');
    expect((await old.read(here)).status).toBe('found');
    const broken = new FakeKeyStore({ onRead: () => ({ fault: 'io' }), onClear: () => ({ fault: 'io' }) });
    expect((await new SucceedingKeyStore(new FakeKeyStore(), broken).read(here)).status).toBe('unreadable');
    expect((await new SucceedingKeyStore(new FakeKeyStore(), broken).clear(here)).status).toBe('failed');
  });
});
