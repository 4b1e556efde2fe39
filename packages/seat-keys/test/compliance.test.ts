import { describe, it } from 'vitest';
import { FakeIssuer, FakeKeyStore, issuerCases, keyStoreCases } from '../src/testing/index.ts';

describe('the key store in memory', () => {
  it.each(keyStoreCases)('$name', ({ run }) => run(new FakeKeyStore()));
});

describe('the issuer in memory', () => {
  it.each(issuerCases)('$name', ({ run }) => run(new FakeIssuer()));
});
