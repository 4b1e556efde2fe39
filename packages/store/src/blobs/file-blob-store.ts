import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { CodedError, codeOf, type WorkspaceId } from '@firecrew/base';
import type { BlobRange, BlobStore, BlobVerdict, ListedBlob, OpenBlob, PutOptions, PutResult } from './blob-store.ts';
import { checkDigest, checkWorkspace, digestMismatch, isDigest, notFound, resolveRange, tooLarge } from './check-names.ts';
import { readMarker } from './store-marker.ts';
import { makeFolder, syncFolder, writeBounded } from './write-durably.ts';

/** Unfinished files older than this belong to no living writer, on any replica. */
export const INCOMING_GRACE_MS = 24 * 60 * 60 * 1000;

/** What a sweep of unfinished files did. */
export interface SweepResult {
  readonly removed: number;
  /** Files that could not be removed, by name. */
  readonly failed: readonly string[];
}

/** A blob store in a folder, which may be shared by several servers. */
export interface FileBlobStore extends BlobStore {
  readonly root: string;
  /** Removes unfinished files older than `INCOMING_GRACE_MS` at `nowMs` (clock of the file system). */
  sweepIncoming(nowMs: number): Promise<SweepResult>;
}

/**
 * Opens the blob store in `root`, made earlier by `initialiseBlobStore`. Throws `blob_store_unavailable`, and
 * `blob_store_other` when its id is not `expectStoreId`.
 */
export async function openFileBlobStore(root: string, options: { readonly expectStoreId?: string } = {}): Promise<FileBlobStore> {
  const storeId = await readMarker(root);
  if (options.expectStoreId !== undefined && options.expectStoreId !== storeId) {
    throw new CodedError('blob_store_other', `${root} is blob store ${storeId}, expected was ${options.expectStoreId}`, {
      id: root,
      action: 'Mount the right store.',
    });
  }
  return {
    root,
    storeId,
    put: (workspace, source, put) => putBlob(root, storeId, workspace, source, put),
    open: (workspace, digest, range) => openBlob(root, storeId, workspace, digest, range),
    has: async (workspace, digest) => (await sizeOf(root, storeId, blobPath(root, workspace, digest))) !== undefined,
    verify: (workspace, digest) => verifyBlob(root, storeId, workspace, digest),
    delete: (workspace, digest) => deleteBlob(root, storeId, workspace, digest),
    list: (workspace) => listBlobs(root, storeId, workspace),
    sweepIncoming: (nowMs) => sweepIncoming(root, nowMs),
  };
}

function workspacePath(root: string, workspace: string): string {
  return join(root, 'workspaces', checkWorkspace(workspace));
}

function blobPath(root: string, workspace: string, digest: string): string {
  checkDigest(digest);
  return join(workspacePath(root, workspace), digest.slice(0, 2), digest);
}

/** A missing file means a missing blob only while the store itself is there. */
async function assertSameStore(root: string, storeId: string): Promise<void> {
  const found = await readMarker(root);
  if (found !== storeId) throw new CodedError('blob_store_unavailable', `${root} is another store now: ${found}`, { id: root });
}

async function sizeOf(root: string, storeId: string, path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await assertSameStore(root, storeId);
    return undefined;
  }
}

async function putBlob(
  root: string,
  storeId: string,
  workspace: WorkspaceId,
  source: AsyncIterable<Uint8Array>,
  options: PutOptions,
): Promise<PutResult> {
  checkWorkspace(workspace);
  if (options.expectDigest !== undefined) checkDigest(options.expectDigest);
  await assertSameStore(root, storeId);
  const incoming = join(root, 'incoming', randomUUID());
  try {
    const written = await writeBounded(incoming, source, options.maxBytes);
    if (written === undefined) throw tooLarge(workspace, options.maxBytes);
    if (options.expectDigest !== undefined && options.expectDigest !== written.digest) {
      throw digestMismatch(workspace, options.expectDigest, written.digest);
    }
    const existed = await place(root, storeId, incoming, blobPath(root, workspace, written.digest), written.bytes);
    return { ...written, existed };
  } finally {
    await rm(incoming, { force: true });
  }
}

/** Moves a finished file to its name, in the place of one that is there too: that may be damaged, and gets young again by it. */
async function place(root: string, storeId: string, incoming: string, path: string, bytes: number): Promise<boolean> {
  const existed = (await sizeOf(root, storeId, path)) === bytes;
  await makeFolder(dirname(path), root);
  await rename(incoming, path);
  await syncFolder(dirname(path));
  return existed;
}

async function openBlob(root: string, storeId: string, workspace: WorkspaceId, digest: string, range?: BlobRange): Promise<OpenBlob> {
  const file = await openFile(root, storeId, blobPath(root, workspace, digest));
  if (file === undefined) throw notFound(workspace, digest);
  try {
    const { size } = await file.stat();
    const [start, end] = resolveRange(range, size, digest);
    if (start === end) {
      await file.close();
      return { size, stream: Readable.from([]) };
    }
    return { size, stream: file.createReadStream({ start, end: end - 1 }) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function openFile(root: string, storeId: string, path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await assertSameStore(root, storeId);
    return undefined;
  }
}

async function verifyBlob(root: string, storeId: string, workspace: WorkspaceId, digest: string): Promise<BlobVerdict> {
  const file = await openFile(root, storeId, blobPath(root, workspace, digest));
  if (file === undefined) return 'missing';
  const hash = createHash('sha256');
  for await (const chunk of file.createReadStream()) hash.update(chunk);
  return hash.digest('hex') === digest ? 'intact' : 'damaged';
}

async function deleteBlob(root: string, storeId: string, workspace: WorkspaceId, digest: string): Promise<boolean> {
  const path = blobPath(root, workspace, digest);
  if ((await sizeOf(root, storeId, path)) === undefined) return false;
  await rm(path, { force: true });
  await syncFolder(dirname(path));
  return true;
}

async function* listBlobs(root: string, storeId: string, workspace: WorkspaceId): AsyncGenerator<ListedBlob> {
  const folder = workspacePath(root, workspace);
  for (const part of await names(root, storeId, folder)) {
    for (const digest of await names(root, storeId, join(folder, part))) {
      if (!isDigest(digest)) continue;
      const found = await stat(join(folder, part, digest)).catch((error: unknown) => {
        if (codeOf(error) === 'ENOENT') return undefined;
        throw error;
      });
      if (found !== undefined) yield { digest, bytes: found.size, storedAtMs: found.mtimeMs };
    }
  }
}

async function names(root: string, storeId: string, folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await assertSameStore(root, storeId);
    return [];
  }
}

async function sweepIncoming(root: string, nowMs: number): Promise<SweepResult> {
  const failed: string[] = [];
  let removed = 0;
  for (const name of await readdir(join(root, 'incoming'))) {
    // Only what a writer of ours made: anything else is not recognised and stays.
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name)) continue;
    const path = join(root, 'incoming', name);
    try {
      if (nowMs - (await stat(path)).mtimeMs < INCOMING_GRACE_MS) continue;
      await rm(path);
      removed += 1;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') failed.push(name);
    }
  }
  return { removed, failed };
}
