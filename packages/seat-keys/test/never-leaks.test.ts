import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  askMintRight,
  describeStoreError,
  type KeyStore,
  type MintReply,
  mintSeatKeys,
  renderOutcome,
  revokeSeatKeys,
  SeatKey,
  type StoreError,
} from '../src/index.ts';
import { addressOf, stored, world } from './world.ts';

/** Begins every secret, so that a part of one is found too. */
const MARK = 'S3CR3T';
const secrets = fc.string({ minLength: 4, maxLength: 30 }).map((text) => `${MARK}${text}`);

/** What a store, a helper or an HTTP client may throw, each with the secret in another place. */
const thrown = (secret: string): fc.Arbitrary<unknown> =>
  fc.constantFrom<unknown>(
    secret,
    new Error(secret),
    new Error('helper failed', { cause: new Error(secret) }),
    Object.assign(new Error(`add -w ${secret}`), { code: secret, fault: secret, exitCode: secret, systemCode: secret }),
    Object.assign(new Error('x'), { code: 'EACCES', path: `/keys/${secret}`, stderr: secret, cmd: `helper -w ${secret}` }),
    Object.assign(new Error('x'), { code: `E${secret.toUpperCase()}`, errno: secret }),
    { status: 500, body: secret, headers: { authorization: secret } },
    new AggregateError([new Error(secret)], secret),
    { fault: 'locked', exitCode: 36, detail: secret },
    null,
    undefined,
    Object.create(null, { message: { get: () => secret, enumerable: true } }),
  );

/** What a store may answer that was written by something else than these types. */
const odd = (secret: string): fc.Arbitrary<StoreError> =>
  fc.constantFrom<StoreError>({ fault: 'io', systemCode: secret }, { fault: 'helper_failed', exitCode: 1, systemCode: `${secret}\n` });

const targets = [{ role: 'coder', seatId: 's1' }, { role: 'release', seatId: 's2' }, { role: 'reviewer' }];

describe('no secret is shown', () => {
  it('by minting, asking or revoking, whatever store and server throw or answer', async () => {
    const faults = secrets.chain((secret) =>
      fc.record({
        secret: fc.constant(secret),
        thrown: thrown(secret),
        odd: odd(secret),
        where: fc.subarray(['open', 'read', 'write', 'clear', 'mint', 'revoke', 'right'] as const),
        answers: fc.boolean(),
        keyId: fc.constantFrom(secret, `id ${secret}`, 'key-1', ''),
        status: fc.constantFrom<MintReply['status']>(201, 403, 404, 500, 'unreachable'),
      }),
    );
    await fc.assert(
      fc.asyncProperty(faults, async (given) => {
        const at = (name: (typeof given.where)[number]): undefined => {
          if (given.where.includes(name)) throw given.thrown;
        };
        const inStore = (name: 'read' | 'write' | 'clear') => (): StoreError | undefined =>
          given.where.includes(name) && given.answers ? given.odd : at(name);
        const { context, mintRun, store, issuer } = world(
          { onRead: inStore('read'), onWrite: inStore('write'), onClear: inStore('clear') },
          {
            onMint: () => at('mint') ?? { status: given.status, key: new SeatKey(given.secret), keyId: given.keyId },
            onRevoke: () => at('revoke') ?? given.status,
          },
        );
        const openStore = async (): Promise<KeyStore> => at('open') ?? store;
        const asked = Object.assign(issuer, {
          askMintRight: async () => at('right') ?? { status: given.status },
        });
        const outcomes = [
          ...(await mintSeatKeys({ ...mintRun(targets), openStore, issuer: asked })),
          ...(await revokeSeatKeys({ ...context, openStore, issuer: asked, targets })),
        ];
        const right = await askMintRight(asked, { connected: true, seatsLinked: 1 });
        const shown = [JSON.stringify(outcomes), ...outcomes.map(renderOutcome), right, describeStoreError(given.odd)].join('\n');
        // An id of letters and digits may be shown, since it is needed to revoke; it is the server's, and no key.
        const named = given.keyId.length > 0 ? shown.replaceAll(given.keyId, '') : shown;
        expect(named).not.toContain(MARK);
      }),
    );
  });

  it('by a stored key, however its record is printed', async () => {
    await fc.assert(
      fc.asyncProperty(secrets, async (secret) => {
        const { store } = world();
        const record = { ...stored('s1', 'key-1'), key: new SeatKey(secret) };
        await store.write(addressOf('s1'), record);
        const read = await store.read(addressOf('s1'));
        expect(`${JSON.stringify(read)}${JSON.stringify([...store.entries])}${String(record.key)}`).not.toContain(MARK);
      }),
    );
  });
});
