import { refusedEntry } from '../tar/refusals.ts';
import type { ByteText, TarEntry } from '../tar/tar-entry.ts';

const PREFIX = '.wh.';
const OPAQUE = '.wh..wh..opq';

/** What an entry of a layer says about the layers below it; undefined for a plain entry. */
export type Whiteout =
  /** The name in this folder is gone, with all below it. */
  | { readonly kind: 'hide'; readonly folder: readonly ByteText[]; readonly name: ByteText }
  /** Everything in this folder is gone. */
  | { readonly kind: 'opaque'; readonly folder: readonly ByteText[] };

/** Reads an entry as a whiteout of the OCI image specification. Throws `entry_refused` when it only looks like one. */
export function parseWhiteout(entry: Pick<TarEntry, 'type' | 'size' | 'path'>, parts: readonly ByteText[]): Whiteout | undefined {
  const name = parts.at(-1) ?? '';
  const folder = parts.slice(0, -1);
  if (folder.some((part) => part.startsWith(PREFIX))) throw refusedEntry('something below a whiteout', entry.path);
  if (!name.startsWith(PREFIX)) return undefined;
  if (entry.type !== 'file' || entry.size !== 0) throw refusedEntry('a whiteout that is no empty file', entry.path);
  if (name === OPAQUE) return { kind: 'opaque', folder };
  const hidden = name.slice(PREFIX.length);
  // Other names with the prefix twice are bookkeeping of an engine that is long gone; what they meant for links is not carried out here.
  if (hidden.startsWith(PREFIX)) throw refusedEntry('a whiteout of an unknown kind', entry.path);
  if (hidden === '' || hidden === '.' || hidden === '..') throw refusedEntry('a whiteout of no name', entry.path);
  return { kind: 'hide', folder, name: hidden };
}
