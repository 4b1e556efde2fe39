export { EncryptedKeyStore, MAX_ENTRY_BYTES } from './encrypted-key-store.ts';
export { EnvironmentKeyStore, SEAT_KEY_VARIABLE } from './environment-key-store.ts';
export { LayeredKeyStore } from './layered-key-store.ts';
