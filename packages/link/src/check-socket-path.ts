import { CodedError } from '@firecrew/base';
import { MAX_SOCKET_PATH_BYTES } from './limits.ts';

/**
 * Refuses a Unix socket path that the kernel cannot hold. Node cuts such a path without a word, and two long paths can then
 * be the same socket. Throws `socket_path_too_long`.
 */
export function checkSocketPath(path: string): void {
  const length = Buffer.byteLength(path);
  if (length <= MAX_SOCKET_PATH_BYTES) return;
  throw new CodedError('socket_path_too_long', `Socket path ${path} has ${length} bytes; Linux allows ${MAX_SOCKET_PATH_BYTES}.`, {
    action: 'Use a shorter home or runtime folder.',
  });
}
