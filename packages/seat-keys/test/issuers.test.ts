import { describe, expect, it } from 'vitest';
import { formatKeyAddress, type Issuer, type MintReply, mintSeatKeys, revokeSeatKeys, rotateSeatKeys, SeatKey } from '../src/index.ts';
import { FakeIssuer, issuerCases } from '../src/testing/index.ts';
import { addressOf, NOW, stored, world } from './world.ts';

const targets = [{ role: 'coder', seatId: 's1' }];

describe('the issuer in memory', () => {
  it.each(issuerCases)('$name', ({ run }) => run(new FakeIssuer()));
});

/** An issuer of another name that exchanges keys in one step. */
class Exchanger extends FakeIssuer implements Issuer {
  readonly name = 'portal';
  reply: MintReply = { status: 200, key: new SeatKey('new'), keyId: 'key-9' };

  async rotate(keyId: string): Promise<MintReply> {
    this.requests.push(`rotate ${keyId}`);
    return this.reply;
  }
}

describe('a key of another issuer', () => {
  it('is stored with its issuer and its end', async () => {
    const issuer = new Exchanger({
      onMint: () => ({ status: 200, key: new SeatKey('k'), keyId: 'key-1', expiresAt: '2026-02-01T00:00:00.000Z' }),
    });
    const { mintRun, store } = world();
    await mintSeatKeys({ ...mintRun(targets), issuer });
    expect(store.entries.get(formatKeyAddress(addressOf('s1')))).toMatchObject({ issuer: 'portal', expiresAt: '2026-02-01T00:00:00.000Z' });
    const later = { ...mintRun(targets), issuer, now: '2026-02-01T00:00:00.000Z' };
    expect((await mintSeatKeys(later))[0]).toEqual({
      role: 'coder',
      outcome: 'already_stored',
      detail: 'it has ended by itself: rotate it',
    });
    expect((await mintSeatKeys({ ...later, now: '2026-01-31T23:59:59.999Z' }))[0]?.detail).toBeUndefined();
  });

  it.each([
    ['of the server, where a portal is asked', undefined, 'portal', 'made by the server itself'],
    ['of a portal, where the server is asked', 'portal', undefined, 'made by the issuer portal'],
    ['of one portal, where another is asked', 'portal', 'other', 'made by the issuer portal'],
  ])('%s, is neither revoked nor rotated: no request, and it is kept', async (_what, made, asked, detail) => {
    const { context, mintRun, store, issuer } = world();
    const named: Issuer = Object.assign(issuer, asked === undefined ? {} : { name: asked });
    store.entries.set(formatKeyAddress(addressOf('s1')), { ...stored('s1', 'key-1'), ...(made === undefined ? {} : { issuer: made }) });
    const outcomes = [
      ...(await revokeSeatKeys({ ...context, issuer: named, targets })),
      ...(await rotateSeatKeys({ ...mintRun(targets), issuer: named })),
    ];
    for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'failed', detail: expect.stringContaining(detail) });
    expect([issuer.requests, store.entries.size]).toEqual([[], 1]);
  });

  it('that an issuer cannot end is kept, and so is one that it gave twice', async () => {
    const { context, mintRun, store } = world();
    store.entries.set(formatKeyAddress(addressOf('s1')), stored('s1', 'key-1'));
    const issuer = new FakeIssuer({
      onRevoke: () => 'not_offered',
      onMint: () => ({ status: 200, key: new SeatKey('same'), keyId: 'key-1' }),
    });
    const [revoked] = await revokeSeatKeys({ ...context, issuer, targets });
    expect(revoked).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('has no way to end keys') });
    const [rotated] = await rotateSeatKeys({ ...mintRun(targets), issuer });
    expect(rotated).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('gave the key that is stored already') });
    expect(store.entries.get(formatKeyAddress(addressOf('s1')))?.key.reveal()).toBe('secret-of-s1');
    const none = new FakeIssuer({ onMint: () => ({ status: 'not_offered' }) });
    store.entries.clear();
    expect((await mintSeatKeys({ ...mintRun(targets), issuer: none }))[0]).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('offers no key for this role'),
    });
  });
});

describe('rotating in one step', () => {
  const scene = async (faultOnWrite = false) => {
    let begun = false;
    const made = world({ onWrite: ({ seatId }) => (begun && faultOnWrite && seatId === 's1' ? { fault: 'io' } : undefined) });
    const issuer = new Exchanger();
    const run = { ...made.mintRun(targets), issuer };
    await mintSeatKeys(run);
    issuer.requests.length = 0;
    begun = true;
    const kept = () => made.store.entries.get(formatKeyAddress(addressOf('s1')));
    return { run, issuer, kept };
  };

  it.each([
    ['another id', 'key-9', 'key-9'],
    ['the id that it had', undefined, 'key-1'],
  ])('stores the new key under %s', async (_what, keyId, wanted) => {
    const { run, issuer, kept } = await scene();
    issuer.reply = { status: 200, key: new SeatKey('new'), ...(keyId === undefined ? {} : { keyId }) };
    expect(await rotateSeatKeys(run)).toEqual([{ role: 'coder', outcome: 'rotated' }]);
    expect([kept()?.key.reveal(), kept()?.keyId, kept()?.createdAt, issuer.requests]).toEqual(['new', wanted, NOW, ['rotate key-1']]);
  });

  it.each<[string, MintReply, string, RegExp]>([
    ['does not let it', { status: 403 }, 'forbidden', /does not let/],
    ['knows no such key', { status: 404 }, 'failed', /has no key key-1: revoke it/],
    ['fails', { status: 500 }, 'failed', /^the issuer portal answered 500$/],
    ['gives no answer', { status: 'unreachable' }, 'failed', /may be dead by now/],
    ['answers without a key', { status: 200 }, 'failed', /may be dead by now/],
  ])('keeps what is stored where the issuer %s', async (_what, reply, outcome, detail) => {
    const { run, issuer, kept } = await scene();
    issuer.reply = reply;
    expect(await rotateSeatKeys(run)).toEqual([{ role: 'coder', outcome, detail: expect.stringMatching(detail) as string }]);
    expect(kept()?.key.reveal()).toBe('secret-of-key-1');
  });

  it('takes a key back that could not be stored, and says that the old one is dead', async () => {
    const { run, issuer } = await scene(true);
    const [outcome] = await rotateSeatKeys(run);
    expect(outcome?.detail).toMatch(/could not be stored.*is dead: revoke it and mint anew/);
    expect(issuer.requests).toEqual(['rotate key-1', 'revoke key-9']);
  });

  it('sends nothing in a dry run', async () => {
    const { run, issuer } = await scene();
    expect(await rotateSeatKeys({ ...run, dryRun: true })).toEqual([{ role: 'coder', outcome: 'rotated', detail: 'dry run' }]);
    expect(issuer.requests).toEqual([]);
  });
});
