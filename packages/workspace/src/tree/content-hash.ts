import { createHash, type Hash, hash } from 'node:crypto';

/** SHA-256 in lower-case hex. */
export function sha256Hex(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}

const SHA256_OF_NOTHING = sha256Hex(new Uint8Array(0));

/** The digest of one file's content. Most files come in one piece, for which no object of the hash is made: thousands would wait to be collected. */
export class ContentHash {
  readonly #size: number;
  #hash: Hash | undefined;
  #hex = SHA256_OF_NOTHING;

  /** @param size bytes that will come. */
  constructor(size: number) {
    this.#size = size;
  }

  update(piece: Uint8Array): void {
    if (piece.length === this.#size) this.#hex = sha256Hex(piece);
    else {
      this.#hash ??= createHash('sha256');
      this.#hash.update(piece);
    }
  }

  /** SHA-256 of what came, lower-case hex. Call it once. */
  hex(): string {
    return this.#hash?.digest('hex') ?? this.#hex;
  }
}
