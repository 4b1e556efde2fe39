import { describe, expect, it } from 'vitest';
import {
  askMintRight,
  formatKeyAddress,
  MINT_OUTCOMES,
  mintSeatKeys,
  PROBE_SEAT,
  renderOutcome,
  SeatKey,
  type SeatTarget,
  serverHostOf,
} from '../src/index.ts';
import { FakeIssuer } from '../src/testing/index.ts';
import { addressOf, NOW, stored, world } from './world.ts';

const crew: readonly SeatTarget[] = [
  { role: 'coder', seatId: 's1' },
  { role: 'reviewer', seatId: 's2' },
  { role: 'writer' },
  { role: 'release', seatId: 's3' },
];
const outcomes = (list: readonly { outcome: string }[]) => list.map((each) => each.outcome);

describe('minting', () => {
  it('gives every linked seat a key, named after node and role, and says so in one line each', async () => {
    const { mintRun, store, issuer } = world();
    const result = await mintSeatKeys(mintRun(crew));
    expect(result.map(renderOutcome)).toEqual(['coder: minted', 'reviewer: minted', 'writer: no seat', 'release: minted']);
    expect(issuer.names).toEqual(['firecrew node-7 coder', 'firecrew node-7 reviewer', 'firecrew node-7 release']);
    expect(store.entries.get(formatKeyAddress(addressOf('s2')))).toMatchObject({
      keyId: 'key-2',
      seatId: 's2',
      workspaceId: 'wsp_1',
      createdAt: NOW,
    });
    expect([...store.entries.keys()].some((key) => key.includes(PROBE_SEAT))).toBe(false);
  });

  it('does nothing the second time', async () => {
    const { mintRun, issuer } = world();
    await mintSeatKeys(mintRun(crew));
    const before = issuer.requests.length;
    expect(outcomes(await mintSeatKeys(mintRun(crew)))).toEqual(['already_stored', 'already_stored', 'no_seat', 'already_stored']);
    expect(issuer.requests).toHaveLength(before);
  });

  it('sends no request when the store cannot be opened', async () => {
    const { mintRun, issuer } = world();
    const openStore = () => Promise.reject(Object.assign(new Error('security -w hunter2'), { exitCode: 36, fault: 'locked' }));
    const result = await mintSeatKeys({ ...mintRun(crew), openStore });
    expect(outcomes(result)).toEqual(['failed', 'failed', 'failed', 'failed']);
    expect(result[0]?.detail).toMatch(/could not be opened.*unlock the keychain.*exit code 36/);
    expect(JSON.stringify(result)).not.toContain('hunter2');
    expect(issuer.requests).toEqual([]);
  });

  it.each([
    ['refuses the probe', { onWrite: () => ({ fault: 'locked' as const }) }],
    [
      'cannot read the probe back',
      { onRead: ({ seatId }: { seatId: string }) => (seatId === PROBE_SEAT ? { fault: 'io' as const } : undefined) },
    ],
    ['cannot clear the probe', { onClear: () => ({ fault: 'io' as const }) }],
  ])('mints nothing when the store %s', async (_, faults) => {
    const { mintRun, issuer } = world(faults);
    expect(outcomes(await mintSeatKeys(mintRun(crew)))).toEqual(['failed', 'failed', 'no_seat', 'failed']);
    expect(issuer.requests).toEqual([]);
  });

  it('mints nothing when the store swallows the probe', async () => {
    const { mintRun, store, issuer } = world();
    store.write = async () => ({ status: 'done' });
    expect(outcomes(await mintSeatKeys(mintRun(crew)))).toEqual(['failed', 'failed', 'no_seat', 'failed']);
    expect(issuer.requests).toEqual([]);
  });

  it('takes back exactly the key that could not be stored, and keeps the ones before it', async () => {
    const { mintRun, store, issuer } = world({
      onWrite: ({ seatId }) => (seatId === 's2' ? { fault: 'io', systemCode: 'ENOSPC' } : undefined),
    });
    const result = await mintSeatKeys(mintRun(crew));
    expect(result[1]).toMatchObject({ outcome: 'failed', detail: expect.stringMatching(/ENOSPC.*taken back/) });
    expect(issuer.requests.filter((request) => request.startsWith('revoke'))).toEqual(['revoke key-2']);
    expect(issuer.live).toEqual(new Set(['key-1', 'key-3']));
    expect(store.entries.has(formatKeyAddress(addressOf('s1')))).toBe(true);
  });

  it.each([500, 'unreachable'] as const)('says that a live key exists and where, when it could not be taken back (%s)', async (status) => {
    const { mintRun } = world({ onWrite: ({ seatId }) => (seatId === 's1' ? { fault: 'io' } : undefined) }, { onRevoke: () => status });
    const [first] = await mintSeatKeys(mintRun(crew));
    expect(first?.detail).toMatch(/key-1 IS STILL VALID AND HELD BY NOBODY: the server (answered 500|gave no answer); revoke it there/);
  });

  it('stops at the first 403 with one request and one line', async () => {
    const { mintRun, issuer } = world({}, { onMint: () => ({ status: 403 }) });
    const result = await mintSeatKeys(mintRun([...crew, { role: 'fifth', seatId: 's5' }]));
    expect(outcomes(result)).toEqual(['forbidden']);
    expect(issuer.requests).toEqual(['mint s1']);
  });

  it.each([
    [{ status: 500 }, /answered 500/],
    [{ status: 201 }, /holds no key/],
    [{ status: 201, key: new SeatKey('') }, /holds no key/],
    [{ status: 201, key: new SeatKey('S3CR3T') }, /LIVE KEY called "firecrew node-7 coder" EXISTS/],
    [{ status: 'unreachable' as const }, /gave no answer that counts; look there for a key called/],
  ])('fails one role by %j and goes on', async (reply, detail) => {
    const { mintRun, store } = world({}, { onMint: (seatId) => (seatId === 's1' ? reply : undefined) });
    const result = await mintSeatKeys(mintRun(crew));
    expect(outcomes(result)).toEqual(['failed', 'minted', 'no_seat', 'minted']);
    expect(result[0]?.detail).toMatch(detail);
    expect(JSON.stringify(result)).not.toContain('S3CR3T');
    expect(store.entries.has(formatKeyAddress(addressOf('s1')))).toBe(false);
  });

  it('fails a role whose entry cannot be read, rather than minting a second key', async () => {
    const { mintRun, issuer } = world({ onRead: ({ seatId }) => (seatId === 's1' ? { fault: 'locked' } : undefined) });
    expect(outcomes(await mintSeatKeys(mintRun(crew)))).toEqual(['failed', 'minted', 'no_seat', 'minted']);
    expect(issuer.requests).not.toContain('mint s1');
  });

  it('requests and writes nothing in a dry run, the probe included', async () => {
    const { mintRun, store, issuer } = world();
    await store.write(addressOf('s2'), stored('s2', 'key-9'));
    const result = await mintSeatKeys({ ...mintRun(crew), dryRun: true });
    expect(result.map(renderOutcome)).toEqual([
      'coder: minted (dry run)',
      'reviewer: already stored',
      'writer: no seat',
      'release: minted (dry run)',
    ]);
    expect(issuer.requests).toEqual([]);
    expect(store.entries.size).toBe(1);
  });

  it('shows no secret of a store or server that puts it into its errors', async () => {
    const leak = (): never => {
      throw Object.assign(new Error('add-generic-password -w S3CR3T'), { code: 'S3CR3T', fault: 'S3CR3T', exitCode: 'S3CR3T' });
    };
    for (const faults of [{ onRead: leak }, { onWrite: leak }, { onClear: leak }]) {
      for (const answers of [{}, { onMint: leak }, { onRevoke: leak }]) {
        const { mintRun } = world(faults, answers);
        expect(JSON.stringify(await mintSeatKeys(mintRun(crew)))).not.toContain('S3CR3T');
      }
    }
  });
});

describe('may keys be minted', () => {
  it.each([
    [200, 'yes'],
    [403, 'no'],
    [401, 'unknown'],
    [500, 'unknown'],
    ['unreachable', 'unknown'],
  ] as const)('%s means %s', async (right, expected) => {
    expect(await askMintRight(new FakeIssuer({ right }), { connected: true, seatsLinked: 1 })).toBe(expected);
  });

  it('is unknown without a connection or a linked seat, and nobody is asked', async () => {
    const issuer = new FakeIssuer();
    expect(await askMintRight(issuer, { connected: false, seatsLinked: 1 })).toBe('unknown');
    expect(await askMintRight(issuer, { connected: true, seatsLinked: 0 })).toBe('unknown');
    expect(issuer.requests).toEqual([]);
  });
});

describe('addresses', () => {
  it('differ for parts that only look alike when joined', () => {
    const one = formatKeyAddress({ serverHost: 'H', workspace: 'a/b', seatId: 'c' });
    expect(one).not.toBe(formatKeyAddress({ serverHost: 'h', workspace: 'a', seatId: 'b/c' }));
    expect(one).toBe(formatKeyAddress({ serverHost: 'h', workspace: 'a/b', seatId: 'c' }));
    expect(() => formatKeyAddress({ serverHost: '', workspace: 'a', seatId: 'b' })).toThrow(
      expect.objectContaining({ code: 'key_address_invalid' }),
    );
  });

  it('take host and port of the server', () => {
    expect(serverHostOf('https://Firecrew.Example.com:8443/api')).toBe('firecrew.example.com:8443');
    expect(() => serverHostOf('nonsense')).toThrow(expect.objectContaining({ code: 'key_address_invalid' }));
  });
});

describe('what others can see', () => {
  it('is fixed: the outcomes', () => {
    expect(MINT_OUTCOMES).toEqual(['minted', 'already_stored', 'no_seat', 'forbidden', 'failed']);
  });
});
