import { afterAll, beforeAll } from 'vitest';

/** A term that ends while a test waits for its end. Other tests have the ordinary one: on a busy machine more time than this passes between two messages. */
export const SHORT_LEASE = { ttlMs: 2_000, renewEveryMs: 200 } as const;

/** What the servers of a test file are started with; `inShortLease`, called in a `describe`, gives those of its tests the short term. */
export function leaseSettings() {
  let settings: { readonly lease?: typeof SHORT_LEASE } = {};
  return {
    settings: () => settings,
    inShortLease: () => {
      beforeAll(() => {
        settings = { lease: SHORT_LEASE };
      });
      afterAll(() => {
        settings = {};
      });
    },
  };
}
