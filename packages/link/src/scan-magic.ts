/** What a scan has come to: a block and the bytes behind it, nothing yet, or too many stale bytes. */
export type ScanResult =
  | { readonly state: 'found'; readonly block: Uint8Array; readonly rest: Uint8Array }
  | { readonly state: 'more' }
  | { readonly state: 'too_much' };

export interface MagicScan {
  /** First bytes of the wanted block. */
  readonly magic: Uint8Array;
  readonly blockBytes: number;
  /** Bytes that may be dropped before the block. */
  readonly maxStaleBytes: number;
  /** Whether a whole block is the wanted one; another counts as stale. */
  readonly wanted: (block: Uint8Array) => boolean;
}

/** Looks for a wanted block, dropping what comes before it. It holds less than one block. */
export class MagicScanner {
  readonly #scan: MagicScan;
  #held: Buffer = Buffer.alloc(0);
  #stale = 0;

  constructor(scan: MagicScan) {
    this.#scan = scan;
  }

  /** Bytes dropped so far. */
  get staleBytes(): number {
    return this.#stale;
  }

  /** Looks at more input. Not used again after `found` or `too_much`. */
  push(input: Uint8Array): ScanResult {
    const { magic, blockBytes, maxStaleBytes, wanted } = this.#scan;
    const bytes = Buffer.concat([this.#held, input]);
    const dropped = this.#stale;
    for (let start = 0; ; start += 1) {
      const found = bytes.indexOf(magic, start);
      start = found >= 0 ? found : Math.max(start, bytes.length - magic.length + 1);
      this.#stale = dropped + start;
      if (this.#stale > maxStaleBytes) return { state: 'too_much' };
      if (found < 0 || bytes.length - start < blockBytes) {
        this.#held = Buffer.from(bytes.subarray(start));
        return { state: 'more' };
      }
      const block = bytes.subarray(start, start + blockBytes);
      if (wanted(block)) return { state: 'found', block, rest: bytes.subarray(start + blockBytes) };
    }
  }
}
