import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { PostgresBinaries } from './locate-binaries.ts';

/** Programs ready to run, with the folder of library links their `LD_LIBRARY_PATH` must name. */
export interface RunnableBinaries {
  readonly bin: string;
  readonly libraries: string | undefined;
}

/**
 * Makes packaged programs runnable under `supportDir`: a folder of library links, which the package would make in an install
 * script that is not run, and, with `copy`, a tree that another account can reach wherever the package lies.
 * Both are built aside and renamed, so a killed start leaves no half of one.
 */
export async function installBinaries(binaries: PostgresBinaries, supportDir: string, copy: boolean): Promise<RunnableBinaries> {
  if (binaries.native === undefined) return { bin: binaries.bin, libraries: undefined };
  await mkdir(supportDir, { recursive: true, mode: copy ? 0o755 : 0o700 });
  const native = copy ? await copyTree(binaries.native, join(supportDir, `postgres-${binaries.version}`), supportDir) : binaries.native;
  const libraries = await linkLibraries(native, supportDir);
  return { bin: join(native, 'bin'), libraries };
}

async function copyTree(from: string, to: string, supportDir: string): Promise<string> {
  if (await exists(to)) return to;
  await buildAside(supportDir, to, async (aside) => {
    await cp(from, aside, { recursive: true, verbatimSymlinks: true });
  });
  return to;
}

async function linkLibraries(native: string, supportDir: string): Promise<string> {
  const links = await plannedLinks(native);
  const key = createHash('sha256')
    .update(JSON.stringify([...links]))
    .digest('hex')
    .slice(0, 16);
  const folder = join(supportDir, `libraries-${key}`);
  if (await linksHold(folder, links)) return folder;
  await rm(folder, { recursive: true, force: true });
  await buildAside(supportDir, folder, async (aside) => {
    for (const [name, target] of links) await symlink(target, join(aside, name));
  });
  return folder;
}

/** Every library by its file name, and the other names that the package's list gives it. */
async function plannedLinks(native: string): Promise<Map<string, string>> {
  const lib = join(native, 'lib');
  const links = new Map<string, string>();
  for (const name of (await readdir(lib)).sort()) if (/\.so(\.|$)/.test(name)) links.set(name, join(lib, name));
  const list: unknown = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8'));
  for (const entry of Array.isArray(list) ? (list satisfies unknown[]) : []) {
    if (typeof entry !== 'object' || entry === null || !('source' in entry) || !('target' in entry)) continue;
    if (typeof entry.source !== 'string' || typeof entry.target !== 'string') continue;
    const target = resolve(lib, basename(entry.source));
    if (links.has(basename(entry.source))) links.set(basename(entry.target), target);
  }
  return links;
}

async function linksHold(folder: string, links: ReadonlyMap<string, string>): Promise<boolean> {
  for (const [name, target] of links) {
    const actual = await readlink(join(folder, name)).catch(() => undefined);
    if (actual !== target) return false;
  }
  return true;
}

async function buildAside(supportDir: string, to: string, fill: (aside: string) => Promise<void>): Promise<void> {
  const aside = await mkdtemp(join(supportDir, '.new-'));
  try {
    await fill(aside);
    await chmod(aside, 0o755);
    await rename(aside, to).catch((error: unknown) => {
      // Another start finished the same folder first; its content is the same by name.
      if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error;
    });
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return readdir(path).then(
    () => true,
    () => false,
  );
}
