import { type KeyStore, type SeatContext, SeatKey, type SeatTarget } from '../src/index.ts';
import { FakeIssuer, type FakeIssuerAnswers, FakeKeyStore, type FakeStoreFaults } from '../src/testing/index.ts';

export const NOW = '2026-01-01T00:00:00.000Z';
export const SERVER = 'firecrew.example.com';

export function world(faults: FakeStoreFaults = {}, answers: FakeIssuerAnswers = {}) {
  const store = new FakeKeyStore(faults);
  const issuer = new FakeIssuer(answers);
  const context = { serverHost: SERVER, workspace: 'team', openStore: async (): Promise<KeyStore> => store, issuer } satisfies SeatContext;
  const mintRun = (targets: readonly SeatTarget[]) => ({ ...context, targets, workspaceId: 'wsp_1', nodeName: 'node-7', now: NOW });
  return { store, issuer, context, mintRun };
}

export function stored(seatId: string, keyId?: string) {
  return {
    key: new SeatKey(`secret-of-${seatId}`),
    workspaceId: 'wsp_1',
    seatId,
    createdAt: NOW,
    ...(keyId === undefined ? {} : { keyId }),
  };
}

export function addressOf(seatId: string) {
  return { serverHost: SERVER, workspace: 'team', seatId };
}
