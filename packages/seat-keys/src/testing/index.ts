export { type ComplianceCase, issuerCases, keyStoreCases, readOnlyKeyStoreCases } from './compliance.ts';
export { FakeIssuer, type FakeIssuerAnswers, FakeKeyStore, type FakeStoreFaults } from './fakes.ts';
