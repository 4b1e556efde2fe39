/** What the program answers with status 400; the text is all that tells causes apart. */
export class Fault extends Error {}

/** The words of an error of the system, as a program in Rust says them. */
export function osError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const words = OS_ERRORS.get(code);
  return words ?? `${code} (os error ?)`;
}

const OS_ERRORS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'No such file or directory (os error 2)'],
  ['EACCES', 'Permission denied (os error 13)'],
  ['EADDRINUSE', 'Address in use (os error 98)'],
  ['EISDIR', 'Is a directory (os error 21)'],
  ['ENXIO', 'No such device or address (os error 6)'],
]);
