import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ManifestEntry, readableName } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { malformed } from './git-records.ts';
import { GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';

/** Gives the content of one entry: the bytes of a file, the target text of a link. Never by a path that git would follow. */
export type OpenEntry = (path: Uint8Array, entry: ManifestEntry) => AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>;

function changed(entry: ManifestEntry, what: string): CodedError {
  return new CodedError('content_mismatch', `${readableName(entry.path)} has ${what} than its manifest says`, {
    action: 'Collect or fetch the snapshot again.',
  });
}

async function* blobCommands(entries: readonly ManifestEntry[], open: OpenEntry): AsyncGenerator<Uint8Array> {
  for (const [at, entry] of entries.entries()) {
    // The length comes first, so nothing within the content can be read as a command.
    yield Buffer.from(`blob\nmark :${at + 1}\ndata ${entry.size}\n`);
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of await open(entry.path, entry)) {
      bytes += chunk.length;
      if (bytes > entry.size) throw changed(entry, 'more bytes');
      hash.update(chunk);
      yield chunk;
    }
    if (bytes !== entry.size) throw changed(entry, 'fewer bytes');
    if (hash.digest('hex') !== entry.sha256) throw changed(entry, 'another content');
    yield Buffer.from('\n');
  }
  yield Buffer.from('done\n');
}

function readMarks(text: string, count: number): string[] {
  const shas: string[] = [];
  for (const line of text.split('\n')) {
    const [, mark, sha] = /^:([1-9][0-9]*) ([0-9a-f]{40}|[0-9a-f]{64})$/.exec(line) ?? [];
    if (mark !== undefined && sha !== undefined) shas[Number(mark) - 1] = sha;
  }
  if (shas.length !== count || Object.keys(shas).length !== count) throw malformed('fast-import did not name every blob');
  return shas;
}

/**
 * Writes the content of `entries` (files and links) as blobs and gives their object ids by SHA-256.
 * Throws CodedError `content_mismatch` when a content is not what its manifest says.
 */
export async function writeBlobs(gitDir: string, entries: readonly ManifestEntry[], open: OpenEntry): Promise<Map<string, string>> {
  const distinct = [...new Map(entries.map((entry) => [entry.sha256, entry])).values()];
  if (distinct.length === 0) return new Map();
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-git-'));
  try {
    const marks = join(folder, 'marks');
    await runGit(['fast-import', '--quiet', '--done', '--date-format=raw', `--export-marks=${marks}`], {
      gitDir,
      input: blobCommands(distinct, open),
      timeoutMs: GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
    const shas = readMarks(await readFile(marks, 'latin1'), distinct.length);
    return new Map(distinct.map((entry, at) => [entry.sha256, shas[at] ?? '']));
  } finally {
    await rm(folder, { recursive: true, force: true });
    await removeCrashReports(gitDir);
  }
}

async function removeCrashReports(gitDir: string): Promise<void> {
  for (const name of await readdir(gitDir)) if (name.startsWith('fast_import_crash_')) await rm(join(gitDir, name), { force: true });
}
