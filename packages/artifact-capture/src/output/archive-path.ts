import { safeDownloadName } from './safe-download-name.ts';

/** One artifact on its way into an archive. */
export interface ArchivedArtifact {
  readonly id: string;
  /** As its maker called it; never trusted as a path. */
  readonly name: string;
  /** Place of its phase in the mission, from 0; null where it has none. */
  readonly phase: number | null;
  readonly attempt: number | null;
}

/** Folders of a name that are kept; what lies deeper goes to the last of them. */
export const MAX_ARCHIVE_FOLDERS = 20;

/**
 * Paths of artifacts in one archive, in their order: by phase and attempt, then the name with its folders, each component made safe for any
 * disk. No two are the same, also where letter case is ignored: the later one gets its id in front.
 */
export function archivePaths(artifacts: readonly ArchivedArtifact[]): string[] {
  const taken = new Set<string>();
  return artifacts.map(({ id, name, phase, attempt }) => {
    const place = [...(phase === null ? [] : [`phase-${phase + 1}`]), ...(attempt === null ? [] : [`attempt-${attempt}`])];
    const parts = name.split(/[/\\]/).filter((part) => part !== '' && part !== '.' && part !== '..');
    const folders = [...place, ...parts.slice(0, -1).slice(0, MAX_ARCHIVE_FOLDERS).map(safeDownloadName)];
    const last = safeDownloadName(parts.at(-1) ?? '');
    const plain = [...folders, last].join('/');
    const path = taken.has(plain.toLowerCase()) ? [...folders, `${id}-${last}`].join('/') : plain;
    taken.add(path.toLowerCase());
    return path;
  });
}
