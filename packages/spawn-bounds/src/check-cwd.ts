import { MAX_PATH_BYTES } from './limits.ts';
import { byteLength, quoteSubject, refuseSpawn, type SpawnRefusal, type SpawnRule } from './rules.ts';

/** Where a process may start. All paths are absolute real paths (links resolved) of the machine that runs it. */
export interface CwdBounds {
  readonly cwd: unknown;
  readonly workFolder: unknown;
  readonly dataFolder: unknown;
  /** Further runs of path parts that a working directory must not contain, such as `state/db`. */
  readonly deniedParts?: readonly string[];
}

/** The directory to start in: use this, not the string that was checked. */
export interface AcceptedCwd {
  readonly verdict: 'accepted';
  readonly cwd: string;
}

/** Checks that a working directory lies in the work folder (or is it), and neither in nor at the platform's data folder. */
export function checkCwd(bounds: CwdBounds): AcceptedCwd | SpawnRefusal {
  const work = partsOfPath(bounds.workFolder);
  if (work === undefined) return refuseSpawn('work_folder_missing', 'the work folder is missing or no absolute path');
  const data = partsOfPath(bounds.dataFolder);
  if (data === undefined) return refuseSpawn('data_folder_missing', 'the data folder is missing or no absolute path');
  if (typeof bounds.cwd !== 'string' || bounds.cwd === '') return refuseSpawn('cwd_missing', 'the working directory is missing');
  const parts = partsOfPath(bounds.cwd);
  const shown = quoteSubject(bounds.cwd);
  const refuse = (rule: SpawnRule, why: string): SpawnRefusal =>
    refuseSpawn(rule, `the working directory ${shown} ${why}`, String(bounds.cwd));
  if (parts === undefined) return refuse('cwd_not_absolute', 'is no absolute path');
  if (!isWithin(parts, work)) return refuse('cwd_outside_work_folder', 'lies outside the work folder');
  if (isWithin(parts, data)) return refuse('cwd_in_data_folder', 'lies in the data folder of the platform');
  for (const denied of bounds.deniedParts ?? []) {
    if (
      holdsRun(
        parts,
        denied.split('/').filter((part) => part !== ''),
      )
    )
      return refuse('cwd_denied_part', `contains the denied part ${quoteSubject(denied)}`);
  }
  return { verdict: 'accepted', cwd: joinParts(parts) };
}

/** Parts of an absolute path with `.` and `..` resolved, or undefined for anything else. */
export function partsOfPath(path: unknown): readonly string[] | undefined {
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('\0') || byteLength(path) > MAX_PATH_BYTES) return undefined;
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') parts.pop();
    else parts.push(part);
  }
  return parts;
}

/** An absolute path of its parts. */
export function joinParts(parts: readonly string[]): string {
  return `/${parts.join('/')}`;
}

/** True where `parts` is `folder` or below it. */
export function isWithin(parts: readonly string[], folder: readonly string[]): boolean {
  return folder.every((part, at) => parts[at] === part);
}

function holdsRun(parts: readonly string[], run: readonly string[]): boolean {
  if (run.length === 0) return false;
  return parts.some((_, at) => run.every((part, step) => parts[at + step] === part));
}
