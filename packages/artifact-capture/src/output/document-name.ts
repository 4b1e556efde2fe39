import { isUtf8 } from '../bytes.ts';
import { readableName } from '../capture-error.ts';

/** Folder that a document goes to whose own name is taken. */
const ASIDE = 'files/';

/**
 * The name of a document among the artifacts of a phase: its path, readable where that is no UTF-8 text. A name in `taken` (those of the
 * platform's own artifacts, and of the documents before) is never given again: the document goes to a folder `files`. Adds to `taken`.
 */
export function documentName(path: Uint8Array, taken: Set<string>): string {
  let name = isUtf8(path) ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(path) : readableName(path);
  while (taken.has(name)) name = `${ASIDE}${name}`;
  taken.add(name);
  return name;
}
