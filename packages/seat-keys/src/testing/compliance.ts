import type { Issuer, IssuerStatus, KeyAddress, KeyStore, StoredKey } from '../ports.ts';
import { SeatKey } from '../seat-key.ts';

/** One rule that every adapter of a port keeps. `run` throws where it does not; each gets a fresh subject. */
export interface ComplianceCase<Port> {
  readonly name: string;
  readonly run: (subject: Port) => Promise<void>;
}

const here: KeyAddress = { serverHost: 'one.example.com', workspace: 'team', seatId: 'seat-1' };
const record = (key: string): StoredKey => ({
  key: new SeatKey(key),
  workspaceId: 'wsp_1',
  seatId: 'seat-1',
  createdAt: '2026-01-01T00:00:00.000Z',
  lastVerifiedAt: '2026-01-02T00:00:00.000Z',
  keyId: 'key-1',
  issuer: 'portal',
  expiresAt: '2027-01-01T00:00:00.000Z',
});
const strangers: readonly KeyAddress[] = [
  { ...here, serverHost: 'two.example.com' },
  { ...here, workspace: 'team2' },
  { ...here, seatId: 'seat-2' },
  { serverHost: 'one.example.com', workspace: 'team/seat-1', seatId: 'x' },
];
const awkward = 'k\'"\\$`\n\t é 😀 -w --password';

/** What every key store does. */
export const keyStoreCases: readonly ComplianceCase<KeyStore>[] = [
  {
    name: 'says that an unknown address holds nothing',
    run: async (store) => expectThat((await store.read(here)).status === 'absent', 'an empty store gave something'),
  },
  {
    name: 'gives back every field of a record, whatever characters the key holds',
    run: async (store) => {
      expectThat((await store.write(here, record(awkward))).status === 'done', 'the write was refused');
      const back = await store.read(here);
      expectThat(back.status === 'found', 'the record is not there');
      if (back.status !== 'found') return;
      expectThat(back.record.key.reveal() === awkward, 'the key came back changed');
      const wanted = JSON.stringify(record(awkward));
      expectThat(JSON.stringify({ ...record(''), ...back.record }) === wanted, 'a field came back changed');
    },
  },
  {
    name: 'replaces a record that is written again',
    run: async (store) => {
      await store.write(here, record('old'));
      await store.write(here, record('new'));
      const back = await store.read(here);
      expectThat(back.status === 'found' && back.record.key.reveal() === 'new', 'the old record is still there');
    },
  },
  {
    name: 'keeps servers, workspaces and seats apart',
    run: async (store) => {
      await store.write(here, record('mine'));
      for (const other of strangers) expectThat((await store.read(other)).status === 'absent', 'a key was read under another address');
    },
  },
  {
    name: 'forgets a cleared record, and takes clearing nothing as done',
    run: async (store) => {
      await store.write(here, record('gone'));
      expectThat((await store.clear(here)).status === 'done', 'clearing was refused');
      expectThat((await store.read(here)).status === 'absent', 'the record is still there');
      expectThat((await store.clear(here)).status === 'done', 'clearing nothing was refused');
    },
  },
];

/** What every store does that is read alone, given a way to make one that holds records from the start. */
export const readOnlyKeyStoreCases: readonly ComplianceCase<(held: readonly (readonly [KeyAddress, StoredKey])[]) => KeyStore>[] = [
  {
    name: 'says that an unknown address holds nothing',
    run: async (open) => expectThat((await open([]).read(here)).status === 'absent', 'an empty store gave something'),
  },
  {
    name: 'gives every field of a record, whatever characters the key holds',
    run: async (open) => {
      const read = await open([[here, record(awkward)]]).read(here);
      expectThat(read.status === 'found' && read.record.key.reveal() === awkward, 'the key is not there, or came out changed');
      const wanted = JSON.stringify(record(awkward));
      expectThat(read.status === 'found' && JSON.stringify({ ...record(''), ...read.record }) === wanted, 'a field came out changed');
    },
  },
  {
    name: 'keeps servers, workspaces and seats apart',
    run: async (open) => {
      const store = open([[here, record('mine')]]);
      for (const other of strangers) expectThat((await store.read(other)).status === 'absent', 'a key was read under another address');
    },
  },
  {
    name: 'refuses every change, and keeps what it holds',
    run: async (open) => {
      const store = open([[here, record('kept')]]);
      expectThat((await store.write(here, record('new'))).status === 'failed', 'a write was taken');
      expectThat((await store.clear(here)).status === 'failed', 'clearing was taken');
      const read = await store.read(here);
      expectThat(read.status === 'found' && read.record.key.reveal() === 'kept', 'the record changed');
    },
  },
];

const request = { seatId: 'seat-1', role: 'coder', name: 'firecrew node coder' };

/** What every issuer does, against a server that lets the caller mint. */
export const issuerCases: readonly ComplianceCase<Issuer>[] = [
  {
    name: 'says that the caller may mint',
    run: async (issuer) => expectThat(isSuccess((await issuer.askMintRight()).status), 'the right was not confirmed'),
  },
  {
    name: 'gives a new key with an id for each mint',
    run: async (issuer) => {
      const first = await issuer.mint(request);
      const second = await issuer.mint(request);
      for (const reply of [first, second])
        expectThat(isSuccess(reply.status) && reply.key !== undefined && reply.keyId !== undefined, 'a mint gave no key or no id');
      expectThat(first.keyId !== second.keyId, 'two keys have one id');
      expectThat(first.key?.reveal() !== second.key?.reveal(), 'two mints gave one key');
    },
  },
  {
    name: 'revokes a key once, and says 404 of one that is gone or never was',
    run: async (issuer) => {
      const { keyId = '' } = await issuer.mint(request);
      expectThat(isSuccess((await issuer.revoke(keyId)).status), 'the key was not revoked');
      expectThat((await issuer.revoke(keyId)).status === 404, 'a revoked key was revoked again');
      expectThat((await issuer.revoke('never-was')).status === 404, 'an unknown key was revoked');
    },
  },
  {
    name: 'verifies a key until it is revoked, where it can',
    run: async (issuer) => {
      const { key, keyId = '' } = await issuer.mint(request);
      if (issuer.verify === undefined || key === undefined) return;
      expectThat(isSuccess((await issuer.verify(key, keyId)).status), 'a live key was not accepted');
      await issuer.revoke(keyId);
      expectThat((await issuer.verify(key, keyId)).status === 404, 'a revoked key was accepted');
    },
  },
  {
    name: 'puts a new key in the place of an old one, where it does so in one step',
    run: async (issuer) => {
      const { key, keyId = '' } = await issuer.mint(request);
      if (issuer.rotate === undefined) return;
      const next = await issuer.rotate(keyId, request);
      expectThat(isSuccess(next.status) && next.key !== undefined, 'there is no new key');
      expectThat(next.key?.reveal() !== key?.reveal(), 'the new key is the old one');
      expectThat((await issuer.rotate('never-was', request)).status === 404, 'an unknown key was exchanged');
    },
  },
];

function isSuccess(status: IssuerStatus): boolean {
  return typeof status === 'number' && status >= 200 && status < 300;
}

function expectThat(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
