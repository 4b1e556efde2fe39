import { CodedError } from '@firecrew/base';

/** A library that a program needs: the name it is asked for by, and where it lies on this machine. */
export interface NeededLibrary {
  readonly name: string;
  readonly path: string;
}

const FOUND = /^\s*(\S+) => (\/\S+) \(0x[0-9a-f]+\)$/;
/** The kernel's own object, and the loader, which stands with its path alone. */
const NO_FILE = /^\s*(linux-vdso\.so\.1|linux-gate\.so\.1|\/\S+) \(0x[0-9a-f]+\)$/;
const MAX_LIBRARIES = 200;

/** Reads what a loader prints with `--list`. Throws `library_missing`, `loader_answer_unknown`. */
export function parseLoaderList(text: string): readonly NeededLibrary[] {
  const libraries: NeededLibrary[] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '' || NO_FILE.test(line)) continue;
    const [, name, path] = FOUND.exec(line) ?? [];
    if (name === undefined || path === undefined || name.includes('/') || libraries.length >= MAX_LIBRARIES) throw unknown(line);
    libraries.push({ name, path });
  }
  return libraries;
}

function unknown(line: string): CodedError {
  const missing = /^\s*(\S+) => not found$/.exec(line)?.[1];
  if (missing !== undefined)
    return new CodedError('library_missing', `Node needs the library ${missing}, which is not on this machine`, {
      id: missing,
      action: 'Install it, or build the payload with another Node.',
    });
  return new CodedError('loader_answer_unknown', `the loader of this machine answered ${JSON.stringify(line.slice(0, 200))}`, {
    action: 'Build the payload on a machine with glibc.',
  });
}
