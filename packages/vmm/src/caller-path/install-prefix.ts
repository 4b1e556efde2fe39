import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Folders that every guest has from its host. */
const SYSTEM_ROOTS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/etc/alternatives'];
/** Places in which each child is somebody's home. */
const HOME_PARENTS = ['/home', '/Users', '/var/home'];
const PROGRAM_FOLDERS = ['bin', 'sbin', 'libexec'];

/** True for what a guest has without a bind. */
export function coveredBySystem(path: string): boolean {
  return SYSTEM_ROOTS.some((root) => path === root || path.startsWith(`${root}/`));
}

/** True for a home and for every folder that holds one, the root included. */
export function isHomeOrAbove(path: string, homes: readonly string[]): boolean {
  const all = [...homes, '/root', ...HOME_PARENTS];
  return path === '/' || HOME_PARENTS.includes(dirname(path)) || all.some((home) => home === path || home.startsWith(`${path}/`));
}

/** The folder that a program at `path` was installed as a whole in, or undefined where that would be a home. */
export function installPrefix(path: string, homes: readonly string[]): string | undefined {
  const modules = path.indexOf('/node_modules/');
  const inModules = modules > 0 ? path.slice(0, modules) : undefined;
  const folder = dirname(path);
  const candidates = [
    ...(inModules === undefined ? [] : [basename(inModules) === 'lib' ? dirname(inModules) : inModules, join(inModules, 'node_modules')]),
    ...(PROGRAM_FOLDERS.includes(basename(folder)) ? [dirname(folder)] : []),
    folder,
  ];
  return candidates.find((candidate) => !isHomeOrAbove(candidate, homes) && !holdsSettings(candidate, homes));
}

/** The prefix of a folder of programs (`X` of `X/bin`) where it holds libraries and nothing of a user; else undefined. */
export async function prefixOfProgramFolder(folder: string, homes: readonly string[]): Promise<string | undefined> {
  const prefix = dirname(folder);
  if (!PROGRAM_FOLDERS.includes(basename(folder)) || isHomeOrAbove(prefix, homes) || holdsSettings(prefix, homes)) return undefined;
  for (const name of ['lib', 'libexec', 'share']) {
    if (
      await stat(join(prefix, name)).then(
        (stats) => stats.isDirectory(),
        () => false,
      )
    )
      return prefix;
  }
  return undefined;
}

/** A dot folder right in a home (`.local`, `.cargo`, `.config`) holds settings and credentials beside programs. */
function holdsSettings(path: string, homes: readonly string[]): boolean {
  const parent = dirname(path);
  return basename(path).startsWith('.') && ([...homes, '/root'].includes(parent) || HOME_PARENTS.includes(dirname(parent)));
}
