import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';
import type { ByteSource } from './scan-tar.ts';

/** Bytes read ahead: headers of small files lie side by side. */
const WINDOW_BYTES = 256 * 1024;

/** A regular file to read anywhere. */
export interface FileSource extends ByteSource {
  close(): Promise<void>;
}

/** Opens a regular file; no link is followed and no pipe waited for. Throws `source_unreadable`. */
export async function openFileSource(path: string): Promise<FileSource> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile()) throw new Error('it is no regular file');
    return fileSource(handle, stats.size, path);
  } catch (cause) {
    await handle?.close();
    throw unreadable(path, cause);
  }
}

function fileSource(handle: FileHandle, size: number, path: string): FileSource {
  let window: Buffer = Buffer.alloc(0);
  let start = 0;
  const fill = async (offset: number, length: number): Promise<Buffer> => {
    const buffer = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await handle.read(buffer, done, length - done, offset + done);
      if (bytesRead === 0) throw unreadable(path, new Error('it became shorter while it was read'));
      done += bytesRead;
    }
    return buffer;
  };
  return {
    size,
    read: async (offset, length) => {
      if (offset < 0 || length < 0 || offset + length > size) throw unreadable(path, new Error('a part behind its end was asked for'));
      if (length > WINDOW_BYTES) return await fill(offset, length);
      if (offset < start || offset + length > start + window.length) {
        window = await fill(offset, Math.min(WINDOW_BYTES, size - offset));
        start = offset;
      }
      return window.subarray(offset - start, offset - start + length);
    },
    close: async () => await handle.close(),
  };
}

/** A part of another source, as a source of its own. */
export function partOf(source: ByteSource, offset: number, size: number): ByteSource {
  return {
    size,
    read: async (at, length) => {
      if (at < 0 || length < 0 || at + length > size) throw new RangeError('a part behind the end was asked for');
      return await source.read(offset + at, length);
    },
  };
}

/** All bytes of a source in order. */
export async function* streamSource(source: ByteSource, stepBytes: number = WINDOW_BYTES): AsyncGenerator<Buffer> {
  for (let at = 0; at < source.size; at += stepBytes) yield await source.read(at, Math.min(stepBytes, source.size - at));
}

function unreadable(path: string, cause: unknown): CodedError {
  return new CodedError('source_unreadable', `${path} cannot be read: ${messageOf(cause)}`, {
    id: path,
    action: 'Check that it is there, is a plain file, and may be read by this account.',
    cause,
  });
}
