import { CaptureError } from '../capture-error.ts';
import { MAX_COMPONENT_BYTES, type TreeLimits } from './limits.ts';

const SLASH = 0x2f;
const DOT = 0x2e;

/** A path in its one canonical form. No components means the root of the tree itself. */
export interface NormalPath {
  readonly path: Uint8Array;
  readonly components: readonly Uint8Array[];
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
  if (raw[0] === SLASH) throw new CaptureError('absolute_path', 'a name is absolute', raw);
  if (raw.includes(0)) throw new CaptureError('nul_in_path', 'a name holds a NUL', raw);
  const components: Uint8Array[] = [];
  for (const part of splitPath(raw)) {
    if (part.length === 0 || (part.length === 1 && part[0] === DOT)) continue;
    if (part.length === 2 && part[0] === DOT && part[1] === DOT) {
      throw new CaptureError('parent_component', 'a name holds a parent component', raw);
    }
    if (part.length > MAX_COMPONENT_BYTES) throw new CaptureError('component_too_long', 'a component is too long', raw);
    components.push(part);
  }
  if (components.length > limits.maxDepth) throw new CaptureError('too_deep', `a name has ${components.length} components`, raw);
  const last = splitPath(raw).at(-1);
  const namesFolder = last === undefined || last.length === 0 || (last.length === 1 && last[0] === DOT);
  return { path: joinPath(components), components, namesFolder };
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

/** Components with single slashes between them. */
export function joinPath(components: readonly Uint8Array[]): Uint8Array {
  const length = components.reduce((sum, part) => sum + part.length + 1, 0);
  const path = new Uint8Array(Math.max(0, length - 1));
  let at = 0;
  for (const part of components) {
    if (at > 0) path[at++] = SLASH;
    path.set(part, at);
    at += part.length;
  }
  return path;
}
