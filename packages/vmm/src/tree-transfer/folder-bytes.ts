import { lstat, readdir } from 'node:fs/promises';

/** Entries that are looked at to measure the left-out folders of one tree; sizes beyond are not counted. */
export const MAX_MEASURED_ENTRIES = 200_000;

const SLASH = Buffer.from('/');

/** Bytes of the files below a folder, links not followed; what cannot be read counts nothing. `budget` is used up. */
export async function folderBytes(folder: Buffer, budget: { entries: number }): Promise<number> {
  let bytes = 0;
  const waiting = [folder];
  for (let next = waiting.pop(); next !== undefined && budget.entries > 0; next = waiting.pop()) {
    const entries = await readdir(next, { withFileTypes: true, encoding: 'buffer' }).catch(() => []);
    for (const entry of entries) {
      budget.entries -= 1;
      if (budget.entries < 0) break;
      const path = Buffer.concat([next, SLASH, entry.name]);
      if (entry.isDirectory()) waiting.push(path);
      else if (entry.isFile()) bytes += await sizeOf(path);
    }
  }
  return bytes;
}

async function sizeOf(path: Buffer): Promise<number> {
  return lstat(path).then(
    (stats) => stats.size,
    () => 0,
  );
}
