import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type KeyAddress, SeatKey, type StoredKey } from '@firecrew/seat-keys';
import { keyStoreCases, readOnlyKeyStoreCases } from '@firecrew/seat-keys/testing';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EncryptedKeyStore, EnvironmentKeyStore, LayeredKeyStore, MAX_ENTRY_BYTES, SEAT_KEY_VARIABLE } from '../src/index.ts';

const SECRET = 'fcs_do-not-print-me-0123456789';
const here: KeyAddress = { serverHost: 'one.example.com', workspace: 'team', seatId: 'seat-1' };
const there: KeyAddress = { ...here, seatId: 'seat-2' };
const record = (key = SECRET, over: Partial<StoredKey> = {}): StoredKey => ({
  key: new SeatKey(key),
  workspaceId: 'wsp_1',
  seatId: 'seat-1',
  createdAt: '2026-01-01T00:00:00.000Z',
  keyId: 'key-1',
  ...over,
});

let folder: string;
let store: EncryptedKeyStore;
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'key-store-')), 'keys');
  store = new EncryptedKeyStore(folder);
});
afterEach(() => rm(join(folder, '..'), { recursive: true, force: true }));

const entryFile = async () => join(folder, (await readdir(folder)).find((name) => name.endsWith('.sealed')) ?? 'none');

describe('the store of encrypted files', () => {
  it.each(keyStoreCases)('$name', ({ run }) => run(store));

  it('writes files of its owner alone, in a folder of its owner alone, and leaves no other behind', async () => {
    await store.write(here, record());
    await store.write(here, record('newer'));
    const names = await readdir(folder);
    expect(names.sort()).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.sealed$/), 'store.key']);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    for (const name of names) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
  });

  it('holds neither key nor ids in the clear', async () => {
    await store.write(here, record());
    const bytes = await readFile(await entryFile(), 'latin1');
    for (const text of [SECRET, 'seat-1', 'wsp_1', 'key-1']) expect(bytes).not.toContain(text);
  });

  it('seals the same record differently each time', async () => {
    await store.write(here, record());
    const first = await readFile(await entryFile());
    await store.write(here, record());
    expect((await readFile(await entryFile())).equals(first)).toBe(false);
  });

  it.each<[string, () => Promise<void>]>([
    ['is cut', async () => truncate(await entryFile(), 20)],
    ['is empty', async () => truncate(await entryFile(), 0)],
    ['is longer than any entry', async () => writeFile(await entryFile(), Buffer.alloc(MAX_ENTRY_BYTES + 1))],
    ['is open to others', async () => chmod(await entryFile(), 0o644)],
    [
      'is a link',
      async () => {
        const file = await entryFile();
        await rename(file, join(folder, '..', 'elsewhere'));
        await symlink(join(folder, '..', 'elsewhere'), file);
      },
    ],
    [
      'is a folder',
      async () => {
        const file = await entryFile();
        await rm(file);
        await mkdir(file);
      },
    ],
    [
      'has lost its key',
      async () => {
        await rm(join(folder, 'store.key'));
      },
    ],
    ['is beside a cut key', async () => truncate(join(folder, 'store.key'), 31)],
    ['is beside another key', async () => writeFile(join(folder, 'store.key'), Buffer.alloc(32, 7))],
    ['is beside a key that is open to others', async () => chmod(join(folder, 'store.key'), 0o640)],
  ])('says corrupt, never absent, of an entry that %s', async (_what, damage) => {
    await store.write(here, record());
    await damage();
    expect(await store.read(here)).toEqual({ status: 'unreadable', error: { fault: 'corrupt' } });
  });

  it('says corrupt of an entry with any one bit changed', async () => {
    await store.write(here, record());
    const file = await entryFile();
    const whole = await readFile(file);
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(7), async (at, bit) => {
        const changed = Buffer.from(whole);
        changed[at] = (changed[at] ?? 0) ^ (1 << bit);
        await writeFile(file, changed);
        expect(await store.read(here)).toEqual({ status: 'unreadable', error: { fault: 'corrupt' } });
      }),
      { numRuns: 100 },
    );
  });

  it('does not take an entry that was put in the place of another', async () => {
    await store.write(here, record());
    const mine = await entryFile();
    const bytes = await readFile(mine);
    await rm(mine);
    await store.write(there, record('other', { seatId: 'seat-2' }));
    await writeFile(await entryFile(), bytes);
    expect(await store.read(there)).toEqual({ status: 'unreadable', error: { fault: 'corrupt' } });
  });

  it('writes nothing beside a damaged key, which is never replaced', async () => {
    await store.write(here, record());
    await truncate(join(folder, 'store.key'), 5);
    expect(await store.write(there, record())).toEqual({ status: 'failed', error: { fault: 'corrupt' } });
    expect((await stat(join(folder, 'store.key'))).size).toBe(5);
  });

  it('refuses an entry that it could not read back, and keeps the one before', async () => {
    await store.write(here, record());
    const long = record('x'.repeat(MAX_ENTRY_BYTES));
    expect(await store.write(here, long)).toMatchObject({ status: 'failed', error: { fault: 'io' } });
    const back = await store.read(here);
    expect(back.status === 'found' && back.record.key.reveal()).toBe(SECRET);
  });

  it('says that it could not be read or written where its folder is no folder', async () => {
    await writeFile(folder, 'a file');
    expect(await store.read(here)).toMatchObject({ status: 'unreadable', error: { systemCode: 'ENOTDIR' } });
    expect((await store.write(here, record())).status).toBe('failed');
  });

  it('makes one key, however many write at once', async () => {
    const seats = Array.from({ length: 8 }, (_, at) => ({ ...here, seatId: `s${at}` }));
    await Promise.all(
      seats.map((address) => new EncryptedKeyStore(folder).write(address, record(address.seatId, { seatId: address.seatId }))),
    );
    for (const address of seats) {
      const back = await store.read(address);
      expect(back.status === 'found' && back.record.key.reveal()).toBe(address.seatId);
    }
  });
});

const environmentOf = (held: readonly (readonly [KeyAddress, StoredKey])[]) => {
  const env = Object.fromEntries(
    held.map(([at, kept]) => [`${SEAT_KEY_VARIABLE}${at.seatId}`, JSON.stringify({ ...kept, key: kept.key.reveal() })]),
  );
  return new EnvironmentKeyStore({ env, serverHost: here.serverHost, workspace: here.workspace });
};

describe('the store of the environment', () => {
  it.each(readOnlyKeyStoreCases)('$name', ({ run }) => run(environmentOf));

  it.each([
    ['no JSON', SECRET],
    ['of another shape', JSON.stringify({ key: SECRET })],
    ['of another seat', JSON.stringify({ ...record(), key: SECRET, seatId: 'seat-2' })],
    ['with more than is known', JSON.stringify({ ...record(), key: SECRET, more: 1 })],
  ])('says corrupt, never absent, of a variable that is %s', async (_what, text) => {
    const read = await new EnvironmentKeyStore({ ...here, env: { [`${SEAT_KEY_VARIABLE}seat-1`]: text } }).read(here);
    expect(read).toEqual({ status: 'unreadable', error: { fault: 'corrupt' } });
    expect(JSON.stringify(read)).not.toContain(SECRET);
  });

  it('takes an empty variable for none', async () => {
    const empty = new EnvironmentKeyStore({ ...here, env: { [`${SEAT_KEY_VARIABLE}seat-1`]: '' } });
    expect(await empty.read(here)).toEqual({ status: 'absent' });
  });
});

describe('one store over another', () => {
  it.each(keyStoreCases)('$name', ({ run }) => run(new LayeredKeyStore(environmentOf([]), store)));

  it('reads the first, and changes nothing that it would hide', async () => {
    await store.write(here, record('below'));
    const both = new LayeredKeyStore(environmentOf([[here, record('above')]]), store);
    const read = await both.read(here);
    expect(read.status === 'found' && read.record.key.reveal()).toBe('above');
    expect([(await both.write(here, record())).status, (await both.clear(here)).status]).toEqual(['failed', 'failed']);
    const below = await store.read(here);
    expect(below.status === 'found' && below.record.key.reveal()).toBe('below');
  });

  it('does not pass over what the first could not read', async () => {
    await store.write(here, record('below'));
    const broken = new EnvironmentKeyStore({ ...here, env: { [`${SEAT_KEY_VARIABLE}seat-1`]: '{' } });
    expect((await new LayeredKeyStore(broken, store).read(here)).status).toBe('unreadable');
  });
});
