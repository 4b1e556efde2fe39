import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { codeOf, messageOf } from '@firecrew/base';
import { imageTooLarge, malformedArchive } from '../tar/refusals.ts';
import type { LayerCompression } from './choose-image.ts';

/** Largest window that a zstd layer may ask for, as a power of two: 128 MiB, which is what the format's own tools accept unasked. */
const MAX_WINDOW_LOG = 27;

/** Counts the unpacked bytes of all layers of one image. */
export class ByteBudget {
  readonly most: number;
  #taken = 0;

  constructor(most: number) {
    this.most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Throws `image_too_large` when the budget is spent. */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken > this.most) throw imageTooLarge(`the image has more than ${this.most} bytes when it is unpacked`);
  }
}

/** What was written. */
export interface SpooledArchive {
  readonly bytes: number;
  /** Digest of the plain archive in hex, by the wanted algorithm. */
  readonly hex: string;
}

/**
 * Writes an archive, decompressed, to a new file, so that it can be read anywhere. Nothing behind the budget reaches the disk. Throws
 * `image_too_large`, `layer_malformed`; an error of `stream` is thrown as it is.
 */
export async function spoolArchive(
  stream: AsyncIterable<Uint8Array>,
  file: string,
  options: {
    readonly compression: LayerCompression;
    readonly algorithm: string;
    readonly budget: ByteBudget;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<SpooledArchive> {
  const hash = createHash(options.algorithm);
  let bytes = 0;
  async function* counted(from: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const part of from) {
      options.budget.take(part.length);
      bytes += part.length;
      hash.update(part);
      yield part;
    }
  }
  const target = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  const source = Readable.from(stream, { objectMode: false });
  const signals = options.signal === undefined ? {} : { signal: options.signal };
  try {
    const decompressor = decompressorOf(options.compression);
    if (decompressor === undefined) await pipeline(source, counted, target, signals);
    else await pipeline(source, decompressor, counted, target, signals);
  } catch (error) {
    if (isCompressionFault(error)) throw malformedArchive(`it is no ${options.compression} stream: ${messageOf(error)}`);
    throw error;
  }
  return { bytes, hex: hash.digest('hex') };
}

function decompressorOf(compression: LayerCompression): Transform | undefined {
  if (compression === 'none') return undefined;
  if (compression === 'gzip') return createGunzip();
  return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_LOG } });
}

function isCompressionFault(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return code.startsWith('Z_') || code.startsWith('ZSTD_') || code === 'ERR_ZLIB_INITIALIZATION_FAILED';
}
