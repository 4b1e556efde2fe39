/** Byte paths, each as a text with one character per byte (`latin1`). */
export type PathSet = ReadonlySet<string>;

/** All folders that lead to one of the paths. */
export function foldersLeadingTo(paths: Iterable<string>): Set<string> {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}
