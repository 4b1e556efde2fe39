import { MAX_COMPONENT_BYTES, MAX_PATH_BYTES, MAX_PATH_DEPTH } from '../limits.ts';
import { refusedEntry } from '../tar/refusals.ts';
import type { ByteText } from '../tar/tar-entry.ts';

/**
 * The components of a path inside an image; none for the root. A leading slash and `.` mean nothing there, as for every reader of layers.
 * Throws `entry_refused` on `..`, NUL, and names that no file system of the guest could hold.
 */
export function splitImagePath(path: ByteText): readonly ByteText[] {
  if (path.includes('\0')) throw refusedEntry('a name with a NUL', path);
  if (path.length > MAX_PATH_BYTES) throw refusedEntry(`a path of more than ${MAX_PATH_BYTES} bytes`, path);
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw refusedEntry('a path with ..', path);
  if (parts.some((part) => part.length > MAX_COMPONENT_BYTES)) throw refusedEntry(`a name of more than ${MAX_COMPONENT_BYTES} bytes`, path);
  if (parts.length > MAX_PATH_DEPTH) throw refusedEntry(`a path of more than ${MAX_PATH_DEPTH} folders`, path);
  return parts;
}
