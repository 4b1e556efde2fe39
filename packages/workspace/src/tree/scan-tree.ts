import { type ManifestEntry, snapshotIdOf } from '@firecrew/artifact-capture';
import { sha256Hex } from './content-hash.ts';
import { bytesOfKey } from './folder-handles.ts';
import { type PackOptions, packChunks } from './pack-tree.ts';
import { PackLog, type PackReport } from './tree-report.ts';

/** A tree on disk by content. */
export interface ScannedTree {
  readonly snapshotId: string;
  /** In canonical order. */
  readonly entries: readonly ManifestEntry[];
  readonly report: Omit<PackReport, 'bytes' | 'digest'>;
}

/** Walks and hashes a tree, as {@link packTree} would send it. @throws CodedError as {@link packTree}. */
export async function scanTree(root: string, options: PackOptions = {}): Promise<ScannedTree> {
  const log = new PackLog();
  const entries: ManifestEntry[] = [];
  for await (const _chunk of packChunks(root, options, log, (key, entry) => entries.push({ path: bytesOfKey(key), ...entry })));
  const { bytes: _bytes, digest: _digest, ...report } = log.report({ bytes: 0, digest: '' });
  return { snapshotId: snapshotIdOf(entries, sha256Hex), entries, report };
}
