export { type BlobStoreCase, blobStoreCases } from './blob-store-cases.ts';
export { memoryBlobStore } from './memory-blob-store.ts';
export {
  SHARED_TEST_DATABASE,
  startTestDatabase,
  type TestDatabase,
  type TestDatabaseOptions,
  type TestDatabaseServer,
} from './test-database.ts';
