import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

const STEP_BYTES = 1024 * 1024;

/** Size in bytes and SHA-256 in hex of all bytes of an opened file, read by position: the handle's own offset stays. */
export async function hashHandle(
  handle: FileHandle,
  signal?: AbortSignal,
): Promise<{ readonly sizeBytes: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(STEP_BYTES);
  for (let at = 0; ; ) {
    signal?.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, STEP_BYTES, at);
    if (bytesRead === 0) return { sizeBytes: at, sha256: hash.digest('hex') };
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
