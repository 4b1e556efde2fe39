import { closeFolder, inFolder, listFolder, openFolder, type Path } from './folder-handles.ts';
import { MAX_COUNTED_FILES } from './tree-report.ts';

/** How many files and links a left-out folder holds; not exact when the bound was reached or a part could not be read. */
export function countFiles(path: Path): { files: number; countIsExact: boolean } {
  const count = { files: 0, countIsExact: true };
  addFolder(path, count);
  return count;
}

function addFolder(path: Path, count: { files: number; countIsExact: boolean }): void {
  try {
    const folder = openFolder(path);
    try {
      for (const child of listFolder(folder)) {
        if (count.files >= MAX_COUNTED_FILES) {
          count.countIsExact = false;
          return;
        }
        if (child.isDirectory()) addFolder(inFolder(folder, child.name), count);
        else count.files += 1;
      }
    } finally {
      closeFolder(folder);
    }
  } catch {
    count.countIsExact = false;
  }
}
