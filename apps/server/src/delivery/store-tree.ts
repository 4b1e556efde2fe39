import { createReadStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { type SnapshotBlob, snapshotDirectory } from '@firecrew/workspace';
import type { ServerContext } from '../context.ts';
import { workspaceIdOf } from '../driver/mission-facts.ts';

/** Stored bytes of one tree. */
const MAX_TREE_BYTES = 64 * 1024 * 1024 * 1024;

/** A tree that is in the blob store. */
export interface KeptTree {
  readonly snapshotId: string;
  readonly blobDigest: string;
  readonly bytes: number;
}

/** Puts a snapshot that lies in a file into the blob store. */
export async function storeSnapshotFile(
  context: ServerContext,
  workspaceId: string,
  file: string,
  snapshot: SnapshotBlob,
): Promise<KeptTree> {
  const stored = await context.blobs.put(workspaceIdOf(workspaceId), createReadStream(file), {
    expectDigest: snapshot.blobDigest,
    maxBytes: MAX_TREE_BYTES,
  });
  return { snapshotId: snapshot.snapshotId, blobDigest: stored.digest, bytes: stored.bytes };
}

/** The tree of a mission without a repository: an empty folder, always the same blob. */
export async function storeEmptyTree(context: ServerContext, workspaceId: string): Promise<KeptTree> {
  return await context.repositories.withScratch(async (scratch) => {
    await mkdir(scratch('empty'), { mode: 0o700 });
    const snapshot = await snapshotDirectory(scratch('empty'), scratch('empty.blob'));
    return await storeSnapshotFile(context, workspaceId, scratch('empty.blob'), snapshot);
  });
}
