/** Reads big-endian fields of a byte string; every read past the end gives undefined and leaves the cursor broken for good. */
export interface ByteCursor {
  /** An unsigned number of `size` bytes, 1 to 3. */
  uint(size: 1 | 2 | 3): number | undefined;
  /** The next `length` bytes. */
  bytes(length: number): Uint8Array | undefined;
  /** A byte string whose length stands before it in `size` bytes. */
  vector(size: 1 | 2 | 3): Uint8Array | undefined;
  readonly atEnd: boolean;
}

export function createByteCursor(data: Uint8Array): ByteCursor {
  let offset = 0;
  const bytes = (length: number): Uint8Array | undefined => {
    if (offset + length > data.length) {
      offset = Number.POSITIVE_INFINITY;
      return undefined;
    }
    offset += length;
    return data.subarray(offset - length, offset);
  };
  const uint = (size: number): number | undefined => bytes(size)?.reduce((value, byte) => value * 256 + byte, 0);
  return {
    uint,
    bytes,
    vector(size) {
      const length = uint(size);
      return length === undefined ? undefined : bytes(length);
    },
    get atEnd() {
      return offset === data.length;
    },
  };
}
