import { createHash } from 'node:crypto';
import { MANIFEST_START, type ManifestEntry, manifestRecord } from '@firecrew/artifact-capture';

/** Characters of records that are handed to the hash at a time. */
const BATCH_CHARS = 32 * 1024;

/** The id of a tree by content, from entries that come in canonical order; none of them is kept. */
export class ManifestDigest {
  readonly #hash = createHash('sha256');
  #batch = MANIFEST_START;

  /** @param key the path, one character for each byte. */
  add(key: string, entry: Pick<ManifestEntry, 'kind' | 'size' | 'sha256'>): void {
    this.#batch += manifestRecord(key, entry);
    if (this.#batch.length >= BATCH_CHARS) this.#flush();
  }

  /** The snapshot id of what was added. Call it once. */
  snapshotId(): string {
    this.#flush();
    return this.#hash.digest('hex');
  }

  #flush(): void {
    this.#hash.update(this.#batch, 'latin1');
    this.#batch = '';
  }
}
