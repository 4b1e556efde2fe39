import { byteKey } from '../bytes.ts';
import { EXCLUDABLE_NAMES } from '../tree/decide-exclusion.ts';
import { isGitName } from '../tree/git-names.ts';
import type { ManifestEntry } from '../tree/manifest-entry.ts';
import { splitPath } from '../tree/normalise-path.ts';

/** Name of the file that stands for a phase that left nothing. */
export const EMPTY_MARKER_NAME = 'NO-OUTPUT.md';

/** Why a path of a tree is no output. */
export type LeftOutRule = 'excluded_folder' | 'dot_file' | 'scaffolding' | 'not_a_file' | 'unchanged';

/** What a mission without a repository keeps of a phase's tree. */
export interface KeptFiles {
  /** In canonical order. */
  readonly kept: readonly ManifestEntry[];
  readonly leftOut: readonly { readonly path: Uint8Array; readonly rule: LeftOutRule }[];
  /** Nothing was kept; true only means "produced nothing" when the tree itself was read. */
  readonly isEmpty: boolean;
}

/** A file the platform placed, by content: it is hidden only at its own path and only while unchanged. */
export interface ScaffoldingFile {
  /** Path from the root of the tree. */
  readonly path: Uint8Array;
  readonly sha256: string;
}

const excluded: readonly string[] = EXCLUDABLE_NAMES;
const DOT = 0x2e;

/** Chooses the outputs of a phase: regular files that are new or changed since the phase began. */
export function keepFiles(
  tree: readonly ManifestEntry[],
  before: readonly ManifestEntry[],
  scaffolding: readonly ScaffoldingFile[],
): KeptFiles {
  const known = new Map(before.map((entry) => [byteKey(entry.path), entry]));
  const placed = new Map(scaffolding.map((file) => [byteKey(file.path), file.sha256]));
  const kept: ManifestEntry[] = [];
  const leftOut: { path: Uint8Array; rule: LeftOutRule }[] = [];
  for (const entry of tree) {
    const rule = leftOutRule(entry, known, placed);
    if (rule === undefined) kept.push(entry);
    else leftOut.push({ path: entry.path, rule });
  }
  return { kept, leftOut, isEmpty: kept.length === 0 };
}

/** The text of the marker for a phase that left nothing. */
export function emptyMarker(phaseId: string): string {
  return `# No output

Phase ${phaseId} ended without leaving a file.

If that is right for this phase, set \`allowEmpty: true\` on it; otherwise the phase counts as failed.
`;
}

function leftOutRule(
  entry: ManifestEntry,
  known: ReadonlyMap<string, ManifestEntry>,
  placed: ReadonlyMap<string, string>,
): LeftOutRule | undefined {
  if (entry.kind === 'link' || entry.kind === 'directory') return 'not_a_file';
  const parts = splitPath(entry.path);
  const folders = parts.slice(0, -1);
  if (folders.some((name) => isGitName(name) || excluded.includes(byteKey(name)))) return 'excluded_folder';
  if (parts.some((name) => name[0] === DOT)) return 'dot_file';
  const key = byteKey(entry.path);
  if (placed.get(key) === entry.sha256) return 'scaffolding';
  const old = known.get(key);
  const isSame = old !== undefined && old.sha256 === entry.sha256 && old.kind === entry.kind;
  return isSame ? 'unchanged' : undefined;
}
