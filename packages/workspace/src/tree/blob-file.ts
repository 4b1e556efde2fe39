import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { CodedError, codeOf } from '@firecrew/base';
import { writeLent } from './lend-chunks.ts';
import type { ByteStream } from './tree-sink.ts';

/** Compression level of a blob. */
export const BLOB_ZSTD_LEVEL = 3;
/** Base-2 logarithm of the largest window a blob may ask the reader to keep: 8 MiB. */
export const MAX_BLOB_WINDOW_LOG = 23;

/** A stored blob: the digest (SHA-256, lower-case hex) and number of the stored bytes. */
export interface StoredBlob {
  readonly blobDigest: string;
  readonly bytes: number;
}

/** Compresses chunks, each of which is done with before the next is asked for, into a file: written beside it, synced, then renamed, so the name never shows a part. */
export async function writeBlobFile(file: string, chunks: ByteStream): Promise<StoredBlob> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.part`;
  const hash = createHash('sha256');
  let bytes = 0;
  const handle = await open(temporary, 'wx', 0o600);
  try {
    const compress = createZstdCompress({
      params: { [constants.ZSTD_c_compressionLevel]: BLOB_ZSTD_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
    });
    const fed = writeLent(chunks, compress).then(
      () => compress.end(),
      (error: Error) => compress.destroy(error),
    );
    for await (const chunk of compress) {
      hash.update(chunk);
      bytes += chunk.length;
      await handle.writeFile(chunk);
    }
    await fed;
    await handle.sync();
    await handle.close();
    await rename(temporary, file);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
  return { blobDigest: hash.digest('hex'), bytes };
}

/**
 * The tar stream of a blob. Whoever reads it sets the bounds; memory is bounded by the window.
 * @throws CodedError `blob_missing`, `blob_corrupt` (also when the stored bytes do not have the wanted digest), while it is read.
 */
export async function* readBlobFile(file: string, blobDigest?: string): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      const found = hash.digest('hex');
      const isWanted = blobDigest === undefined || found === blobDigest;
      done(isWanted ? null : corrupt(file, `its digest is ${found}, not ${blobDigest}`));
    },
  });
  const tar = createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: MAX_BLOB_WINDOW_LOG } });
  const finished = pipeline(createReadStream(file), meter, tar);
  finished.catch(() => undefined);
  try {
    for await (const chunk of tar) yield chunk;
    await finished;
  } catch (error) {
    throw blobFailure(file, error);
  }
}

function blobFailure(file: string, error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  const code = codeOf(error);
  if (code === 'ENOENT') {
    return new CodedError('blob_missing', `the blob ${file} does not exist`, { id: file, action: 'Fetch it again.', cause: error });
  }
  return corrupt(file, `it could not be read (${code ?? 'error'})`, error);
}

function corrupt(file: string, why: string, cause?: unknown): CodedError {
  return new CodedError('blob_corrupt', `the blob ${file} is refused: ${why}`, { id: file, action: 'Fetch it again.', cause });
}
