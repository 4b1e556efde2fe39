import { describe, expect, it } from 'vitest';
import { formatKeyAddress, mintSeatKeys, ROTATE_OUTCOMES, type RotateOutcomeKind, renderOutcome, rotateSeatKeys } from '../src/index.ts';
import type { FakeIssuerAnswers, FakeStoreFaults } from '../src/testing/index.ts';
import { addressOf, stored, world } from './world.ts';

const targets = [{ role: 'coder', seatId: 's1' }, { role: 'writer' }, { role: 'release', seatId: 's2' }];

/** Two seats with a key each, and faults that begin after that. */
async function minted(faults: FakeStoreFaults = {}, answers: FakeIssuerAnswers = {}) {
  let begun = false;
  const scene = world(
    { onRead: (at) => (begun ? faults.onRead?.(at) : undefined), onWrite: (at) => (begun ? faults.onWrite?.(at) : undefined) },
    {
      onMint: (seat) => (begun ? answers.onMint?.(seat) : undefined),
      onRevoke: (key) => (begun ? answers.onRevoke?.(key) : undefined),
    },
  );
  await mintSeatKeys(scene.mintRun(targets));
  scene.issuer.requests.length = 0;
  begun = true;
  const keyOf = (seatId: string) => scene.store.entries.get(formatKeyAddress(addressOf(seatId)))?.keyId;
  return { ...scene, keyOf };
}

describe('rotating', () => {
  it('stores the new key before the old one is revoked, and names it as the successor', async () => {
    const { mintRun, issuer, keyOf } = await minted();
    const result = await rotateSeatKeys(mintRun(targets));
    expect(result.map(renderOutcome)).toEqual(['coder: rotated', 'writer: no seat', 'release: rotated']);
    expect(issuer.requests).toEqual(['mint s1', 'revoke key-1 for key-3', 'mint s2', 'revoke key-2 for key-4']);
    expect([keyOf('s1'), keyOf('s2'), [...issuer.live].sort()]).toEqual(['key-3', 'key-4', ['key-3', 'key-4']]);
  });

  it('takes a new key back that cannot be stored, and leaves the old one as it is', async () => {
    let writes = 0;
    const { mintRun, issuer, keyOf } = await minted({
      onWrite: ({ seatId }) => (seatId === 's1' && ++writes > 0 ? { fault: 'io' } : undefined),
    });
    const [first, , third] = await rotateSeatKeys(mintRun(targets));
    expect(first).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('it was taken back') });
    expect(third?.outcome).toBe('rotated');
    expect([keyOf('s1'), issuer.live.has('key-1'), issuer.live.has('key-3')]).toEqual(['key-1', true, false]);
  });

  it('says loudly that the old key lives where it could not be revoked, and keeps the new one', async () => {
    const { mintRun, keyOf } = await minted({}, { onRevoke: (keyId) => (keyId === 'key-1' ? 500 : undefined) });
    const [first] = await rotateSeatKeys(mintRun(targets));
    expect(first).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('key-1 IS STILL VALID') });
    expect(keyOf('s1')).toBe('key-3');
  });

  it('sends nothing in a dry run, or where the store cannot be read or written', async () => {
    const dry = await minted();
    expect((await rotateSeatKeys({ ...dry.mintRun(targets), dryRun: true })).map((each) => each.detail)).toEqual([
      'dry run',
      undefined,
      'dry run',
    ]);
    const blind = await minted({ onRead: ({ seatId }) => (seatId === 's1' ? { fault: 'locked' } : undefined) });
    expect((await rotateSeatKeys(blind.mintRun(targets.slice(0, 1))))[0]?.outcome).toBe('failed');
    const full = await minted({ onWrite: () => ({ fault: 'io', systemCode: 'ENOSPC' }) });
    expect((await rotateSeatKeys(full.mintRun(targets))).map((each) => each.outcome)).toEqual(['failed', 'no_seat', 'failed']);
    for (const { issuer } of [dry, blind, full]) expect(issuer.requests).toEqual([]);
  });

  it('produces each outcome of its list, by these states and no others', async () => {
    const seen = new Set<RotateOutcomeKind>();
    const collect = async (run: Parameters<typeof rotateSeatKeys>[0]) => {
      for (const { outcome } of await rotateSeatKeys(run)) seen.add(outcome);
    };
    await collect((await minted()).mintRun(targets));
    await collect(world().mintRun([{ role: 'coder', seatId: 's1' }]));
    const forbidden = await minted({}, { onMint: () => ({ status: 403 }) });
    expect((await rotateSeatKeys(forbidden.mintRun(targets))).map((each) => each.outcome)).toEqual(['forbidden']);
    await collect(forbidden.mintRun(targets));
    const noId = world();
    await noId.store.write(addressOf('s1'), stored('s1'));
    await collect(noId.mintRun([{ role: 'coder', seatId: 's1' }]));
    expect([...seen].sort()).toEqual([...ROTATE_OUTCOMES].sort());
  });
});
