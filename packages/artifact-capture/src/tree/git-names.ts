import { byteKey } from '../bytes.ts';

// Code points that HFS+ ignores when it compares names, as UTF-8 bytes read one character per byte:
// U+200C-200F, U+202A-202E, U+206A-206F and U+FEFF.
const HFS_IGNORED = /\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf/g;
// NTFS drops trailing dots and blanks, ends a name at a stream mark, and knows short names.
const NTFS_GIT = /^(\.git|git~1)[ .]*(:.*)?$/is;
const NTFS_GITMODULES = /^(\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[1-9][0-9])[ .]*(:.*)?$/is;

/**
 * True when a file system somewhere reads this path component as `.git`: any case, NTFS forms, HFS+ ignorable characters.
 * A text has one character for each byte ({@link byteKey}).
 */
export function isGitName(component: Uint8Array | string): boolean {
  return matchesFolded(component, '.git', NTFS_GIT);
}

/** True when a file system somewhere reads this path component as `.gitmodules`. */
export function isGitmodulesName(component: Uint8Array | string): boolean {
  return matchesFolded(component, '.gitmodules', NTFS_GITMODULES);
}

function matchesFolded(component: Uint8Array | string, name: string, ntfs: RegExp): boolean {
  const raw = typeof component === 'string' ? component : byteKey(component);
  // Every form of both names has a G, and most names have none.
  if (!/g/i.test(raw)) return false;
  if (raw.replace(HFS_IGNORED, '').toLowerCase() === name) return true;
  // On NTFS a backslash separates, so each piece is a name of its own.
  return raw.split('\\').some((piece) => ntfs.test(piece));
}
