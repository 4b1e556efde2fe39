import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ManifestEntry } from '@firecrew/artifact-capture';
import { codeOf } from '@firecrew/base';
import { isCommitId } from '@firecrew/delivery';
import { keyPath, pathKey, splitRecords, textOf } from './git-records.ts';
import type { TreeListing } from './list-tree.ts';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { type RulePlace, withRuleFiles } from './with-rule-files.ts';
import type { WrittenBlobs } from './write-blobs.ts';

/** A path that was imported as it lies in the tree although the base's attributes name a filter for it, such as `lfs`. */
export interface UnfilteredPath {
  readonly path: Uint8Array;
  readonly filter: string;
}

/** What the base's attributes make of new contents. */
export interface CleanedContents {
  /** Object ids that take the place of the content's own, by `pathKey`. */
  readonly blobs: ReadonlyMap<string, string>;
  readonly unfiltered: readonly UnfilteredPath[];
}

/** What is known about the contents: how they were written, and the setting of the checkout they come from. */
export interface KnownContents extends WrittenBlobs {
  readonly autocrlf?: 'true' | 'input';
}

const ATTRIBUTES = ['text', 'eol', 'ident', 'working-tree-encoding', 'filter'] as const;
const OFF = new Set(['', 'unspecified', 'unset']);

/**
 * Turns the line ends, keywords and encodings of a checkout back into what a commit holds, by the attributes of the base alone: else one edited line would
 * rewrite a whole file. Filters are named and not run.
 */
export async function cleanContents(
  missionDir: string,
  base: TreeListing,
  entries: readonly ManifestEntry[],
  known: KnownContents,
): Promise<CleanedContents> {
  const files = entries.filter((entry) => entry.kind === 'file' || entry.kind === 'executable');
  const autocrlf = known.autocrlf !== undefined;
  const cleaned =
    files.length === 0
      ? undefined
      : await withRuleFiles(missionDir, base, '.gitattributes', autocrlf, async (place) => {
          const attributes = await readAttributes(place, files);
          const blobs = new Map<string, string>();
          const unfiltered: UnfilteredPath[] = [];
          for (const entry of files) {
            const key = pathKey(entry.path);
            const of = attributes.get(key) ?? {};
            const filter = filterOf(of);
            if (filter !== undefined && !(filter === 'lfs' && known.lfsPointers.has(entry.sha256)))
              unfiltered.push({ path: entry.path, filter });
            const blob = known.blobs.get(entry.sha256);
            if (blob === undefined || !mayDiffer(of, known.withLineEnds.has(entry.sha256), autocrlf)) continue;
            if (isGuessed(of) && (await holdsLineEnds(place, base.get(key)?.sha))) continue;
            const sha = await cleanBlob(place, entry.path, blob, known.autocrlf);
            if (sha !== undefined && sha !== blob) blobs.set(key, sha);
          }
          return { blobs, unfiltered };
        });
  return cleaned ?? { blobs: new Map(), unfiltered: [] };
}

type Attributes = Partial<Record<string, string>>;

/** The filter that git would run; `filter` without a name runs none. */
function filterOf(of: Attributes): string | undefined {
  return OFF.has(of.filter ?? '') || of.filter === 'set' ? undefined : of.filter;
}

function mayDiffer(of: Attributes, hasLineEnds: boolean, autocrlf: boolean): boolean {
  if (!OFF.has(of.ident ?? '') || !OFF.has(of['working-tree-encoding'] ?? '')) return true;
  if (!hasLineEnds || of.text === 'unset') return false;
  return autocrlf || !OFF.has(of.text ?? '') || !OFF.has(of.eol ?? '');
}

/** Whether git would leave a file alone that holds CR LF in the commit already: it does where it guesses that a file is text. */
function isGuessed(of: Attributes): boolean {
  return of.text === 'auto' || (OFF.has(of.text ?? '') && OFF.has(of.eol ?? ''));
}

async function holdsLineEnds(place: RulePlace, blob: string | undefined): Promise<boolean> {
  if (blob === undefined) return false;
  let last = 0;
  for await (const chunk of readContent(place, blob)) {
    if (chunk.includes('\r\n') || (last === 0x0d && chunk[0] === 0x0a)) return true;
    last = chunk.at(-1) ?? last;
  }
  return false;
}

/** The content of a blob, by way of a file: it may be larger than memory should hold. */
async function* readContent(place: RulePlace, blob: string): AsyncGenerator<Buffer> {
  const outFile = join(place.gitDir, 'content');
  const limits = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_SMALL_OUTPUT_BYTES };
  try {
    await runGit(['cat-file', 'blob', blob], { ...place, ...limits, outFile });
    yield* createReadStream(outFile) as AsyncIterable<Buffer>;
  } finally {
    await rm(outFile, { force: true });
  }
}

async function readAttributes(place: RulePlace, files: readonly ManifestEntry[]): Promise<Map<string, Attributes>> {
  const input = Buffer.concat(files.flatMap((entry) => [entry.path, Buffer.from([0])]));
  const limits = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_LISTING_MAX_BYTES };
  const { stdout } = await runGit(['check-attr', '-z', '--stdin', ...ATTRIBUTES], { ...place, ...limits, input });
  const found = new Map<string, Attributes>();
  const fields = splitRecords(stdout);
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [path, name, value] = [fields[at], fields[at + 1], fields[at + 2]];
    if (path === undefined || name === undefined || value === undefined) continue;
    found.set(pathKey(path), { ...found.get(pathKey(path)), [name.toString('latin1')]: value.toString('utf8') });
  }
  return found;
}

/** The blob of a content as a commit would hold it; undefined when git cannot convert it, so that it stays as it is. */
async function cleanBlob(
  place: RulePlace,
  path: Uint8Array,
  blob: string,
  autocrlf: 'true' | 'input' | undefined,
): Promise<string | undefined> {
  // An argument cannot carry a name that is no UTF-8.
  const name = keyPath(pathKey(path)).toString('utf8');
  if (!Buffer.from(name).equals(path)) return undefined;
  try {
    const { stdout } = await runGit(['hash-object', '-w', '--stdin', `--path=${name}`], {
      ...place,
      config: autocrlf === undefined ? [] : [['core.autocrlf', autocrlf]],
      input: readContent(place, blob),
      timeoutMs: GIT_LOCAL_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
    const sha = textOf(stdout);
    return isCommitId(sha) ? sha : undefined;
  } catch (error) {
    if (codeOf(error) !== 'git_failed') throw error;
    return undefined;
  }
}
