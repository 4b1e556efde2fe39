import type { Writable } from 'node:stream';
import type { ByteStream } from './tree-sink.ts';

/**
 * Writes each chunk and asks for the next when the stream has done with it, so the same memory may hold them all. Leaves the stream open.
 * Rejects with the stream's error; the chunks are then asked for no more.
 */
export async function writeLent(chunks: ByteStream, target: Writable): Promise<void> {
  for await (const chunk of chunks) await written(target, chunk);
}

function written(target: Writable, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    // Not every stream that is destroyed calls back for what it was writing.
    const onClose = (): void => reject(target.errored ?? new Error('the stream was closed before all was written'));
    target.once('close', onClose).write(chunk, (error) => {
      target.off('close', onClose);
      if (error === undefined || error === null) resolve();
      else reject(error);
    });
  });
}

/** Chunks that may be kept, from chunks that may not. */
export async function* ownedChunks(chunks: ByteStream): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) yield Buffer.from(chunk);
}
