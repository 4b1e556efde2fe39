import { byteKey, fromByteKey } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { MAX_COMPONENT_BYTES, type TreeLimits } from './limits.ts';

const SLASH = 0x2f;

/** A path in its one canonical form. No components means the root of the tree itself. */
export interface NormalPath {
  /** The bytes that came, where they were in that form. */
  readonly path: Uint8Array;
  /** The path, one character for each byte; so are its components. */
  readonly key: string;
  readonly components: readonly string[];
  /** The name ended in a slash or a lone dot, which only a folder may. */
  readonly namesFolder: boolean;
}

/**
 * Brings an entry's name to its canonical form: `.` and empty components go, nothing else is repaired.
 * @throws CaptureError on an empty or absolute name, a NUL, a `..`, or a bound passed.
 */
export function normalisePath(raw: Uint8Array, limits: TreeLimits): NormalPath {
  if (raw.length === 0) throw new CaptureError('empty_path', 'an entry has no name');
  if (raw.length > limits.maxNameBytes) throw new CaptureError('path_too_long', `a name has ${raw.length} bytes`, raw);
  const name = byteKey(raw);
  if (name.startsWith('/')) throw new CaptureError('absolute_path', 'a name is absolute', raw);
  if (name.includes('\0')) throw new CaptureError('nul_in_path', 'a name holds a NUL', raw);
  const parts = name.split('/');
  const components = parts.filter((part) => part !== '' && part !== '.');
  for (const part of components) {
    if (part === '..') throw new CaptureError('parent_component', 'a name holds a parent component', raw);
    if (part.length > MAX_COMPONENT_BYTES) throw new CaptureError('component_too_long', 'a component is too long', raw);
  }
  if (components.length > limits.maxDepth) throw new CaptureError('too_deep', `a name has ${components.length} components`, raw);
  const last = parts.at(-1);
  const isCanonical = components.length === parts.length;
  const key = isCanonical ? name : components.join('/');
  return { path: isCanonical ? raw : fromByteKey(key), key, components, namesFolder: last === '' || last === '.' };
}

/** The pieces between slashes, empty ones included. */
export function splitPath(path: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (let at = path.indexOf(SLASH); at !== -1; at = path.indexOf(SLASH, from)) {
    parts.push(path.subarray(from, at));
    from = at + 1;
  }
  parts.push(path.subarray(from));
  return parts;
}
