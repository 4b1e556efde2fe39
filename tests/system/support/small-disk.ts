import { execFileSync } from 'node:child_process';
import { statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Lays a small file system over a folder, of the same owner and rights; false without the right to mount. */
export function mountSmall(folder: string, size: string): boolean {
  if (process.getuid?.() !== 0) return false;
  const { uid, gid, mode } = statSync(folder);
  try {
    execFileSync(
      'mount',
      ['-t', 'tmpfs', '-o', `size=${size},uid=${uid},gid=${gid},mode=${(mode & 0o7777).toString(8)}`, 'tmpfs', folder],
      { stdio: 'ignore' },
    );
    return true;
  } catch {
    return false;
  }
}

/** Leaves so many bytes of a file system. */
export function fill(folder: string, leave: number): void {
  const { bavail, bsize } = statfsSync(folder);
  execFileSync(
    'dd',
    ['if=/dev/zero', `of=${join(folder, 'filler')}`, 'bs=4096', `count=${Math.max(0, Math.floor((bavail * bsize - leave) / 4096))}`],
    {
      stdio: 'ignore',
    },
  );
}
