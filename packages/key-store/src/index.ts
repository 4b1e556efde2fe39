export { EncryptedKeyStore, MAX_ENTRY_BYTES } from './encrypted-key-store.ts';
export { EnvironmentKeyStore, SEAT_KEY_VARIABLE } from './environment-key-store.ts';
export { KeychainKeyStore, type KeychainOptions, keychainProgram } from './keychain/keychain-key-store.ts';
export { HELPER_TIMEOUT_MS } from './keychain/run-helper.ts';
export { LayeredKeyStore } from './layered-key-store.ts';
export { SucceedingKeyStore } from './succeeding-key-store.ts';
