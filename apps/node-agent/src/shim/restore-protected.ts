import { join } from 'node:path';
import { byteKey, compareEntries, type ManifestEntry, nameBytes, nameText } from '@firecrew/artifact-capture';
import { planRestore } from '@firecrew/stop-gate';
import { canonicaliseArchive, readBlobEntries } from '@firecrew/workspace';
import type { AttemptContext, StagedTree } from './attempt-context.ts';
import { shownPath } from './collect-tree.ts';
import { inputFile } from './send-trees.ts';
import { archiveOf, pick } from './tree-archive.ts';

/**
 * Puts the paths under `gate.protect` back as they were at the base. The tree that results is the one that is checked, and so the
 * one that is delivered.
 */
export async function restoreProtected(
  context: AttemptContext,
  tree: StagedTree,
  changed: readonly string[],
  round: number,
): Promise<{ tree: StagedTree; paths: readonly string[] }> {
  const { spec, paths, state } = context;
  if (spec.gate.protect.length === 0) return { tree, paths: [] };
  const named = state.base.map((entry) => ({ path: nameText(entry.path), entry }));
  const plan = planRestore(spec.gate.protect, named, changed);
  if (plan.restore.length === 0 && plan.remove.length === 0) return { tree, paths: [] };
  const restored = new Set(plan.restore.map((item) => byteKey(item.entry.path)));
  const removed = new Set([...plan.remove.map((path) => byteKey(nameBytes(path))), ...restored]);
  const file = join(paths.staged, `round-${round}-restored.tar.zst`);
  const collected = pick(readBlobEntries(tree.file), (entry) => !removed.has(byteKey(entry.path)));
  const base = pick(readBlobEntries(inputFile(context, spec.base.blob.digest)), (entry) => restored.has(byteKey(entry.path)));
  const snapshot = await canonicaliseArchive(archiveOf([collected, base]), file);
  const captured = {
    ...tree.captured,
    snapshotId: snapshot.snapshotId,
    blobDigest: snapshot.blobDigest,
    bytes: snapshot.bytes,
    files: snapshot.entries.length,
  };
  const entries: readonly ManifestEntry[] = [...snapshot.entries].sort(compareEntries);
  return {
    tree: { file, captured, entries },
    paths: [...new Set([...plan.restore.map((item) => item.path), ...plan.remove])].map(shownPath),
  };
}
