import { byteKey, type TreeLimits } from '@firecrew/artifact-capture';
import { CodedError, codeOf } from '@firecrew/base';
import { layOver } from './lay-over.ts';
import { type ArchiveProof, type ReadArchive, readArchive, readEvents, refusal } from './read-archive.ts';
import { removeTree } from './remove-tree.ts';
import { makeStaging, swapIn } from './swap-folder.ts';
import { type ByteSource, placeEntry } from './tree-sink.ts';
import { TreeWriter } from './tree-writer.ts';

/** What is demanded of an archive before it may take the destination's place. */
export interface UnpackOptions extends ArchiveProof {
  readonly limits?: Partial<TreeLimits>;
  /** The only snapshot that is accepted. */
  readonly snapshotId?: string;
  /** Names at the top of the old tree that stay, such as a host-made `.git`; an archive can never hold that one. */
  readonly carryOver?: readonly string[];
}

/** What was unpacked. */
export interface UnpackedTree extends ReadArchive {
  /** The staging folder with the old tree, when it could not be removed. */
  readonly leftover: string | undefined;
}

/**
 * Unpacks an untrusted tar stream into a fresh folder beside `destination` and, when all of it is good, swaps it in as a
 * whole. On any refusal or cut the destination is as it was. A source that stalls is the caller's to destroy.
 * @throws CodedError `archive_refused`, `archive_cut`, `unpack_failed`, `archive_trailer_mismatch`, `snapshot_mismatch`, `staging_failed`, `swap_failed`; what `proof` rejects with.
 */
export async function unpackTree(source: ByteSource, destination: string, options: UnpackOptions = {}): Promise<UnpackedTree> {
  const { value, leftover } = await replaceTree(destination, options.carryOver ?? [], (folder) =>
    withWriter(folder, (writer) => unpackInto(source, writer, options)),
  );
  return { ...value, leftover };
}

/**
 * Lets `fill` fill a fresh folder beside `destination`, then swaps it in as a whole. When `fill` fails the destination is as it was.
 * `leftover` is the staging folder with the old tree, when it could not be removed.
 * @throws CodedError `staging_failed`, `swap_failed`; what `fill` throws.
 */
async function replaceTree<Value>(
  destination: string,
  carryOver: readonly string[],
  fill: (folder: string) => Promise<Value>,
): Promise<{ readonly value: Value; readonly leftover: string | undefined }> {
  const staging = await makeStaging(destination);
  let leftover: string | undefined;
  let value: Value;
  try {
    value = await fill(staging.tree);
    await swapIn(staging, carryOver);
  } finally {
    leftover = await removeTree(staging.folder);
  }
  return { value, leftover };
}

/** What was stored without a look at its content. */
export interface StoredTree {
  /** Files, links and empty folders. */
  readonly entries: number;
  readonly contentBytes: number;
  /** As of {@link UnpackedTree}. */
  readonly leftover: string | undefined;
}

/**
 * {@link unpackTree} for a caller that asks for neither manifest nor digest: nothing is hashed, no list of the entries is kept.
 * @throws CodedError `archive_refused`, `archive_cut`, `unpack_failed`, `staging_failed`, `swap_failed`.
 */
export async function storeTree(
  source: ByteSource,
  destination: string,
  options: Pick<UnpackOptions, 'limits' | 'carryOver'> = {},
): Promise<StoredTree> {
  const { value, leftover } = await replaceTree(destination, options.carryOver ?? [], (folder) =>
    withWriter(folder, (writer) => storeInto(source, writer, options.limits ?? {})),
  );
  return { ...value, leftover };
}

/** What was stored over a folder. */
export interface LaidTree extends StoredTree {
  /** Files, links and folders that gave way to others of the archive. */
  readonly replaced: number;
}

/**
 * {@link storeTree} into a folder that is there and stays: what it holds beside the archive's paths is left, and of two things with one path that
 * of the archive stays. `prepare` gets the folder with the unpacked archive before. Nobody else may write to the folder meanwhile.
 * @throws CodedError `archive_refused`, `archive_cut`, `unpack_failed`, `staging_failed`; `lay_over_failed`, with a part of it laid.
 */
export async function storeTreeOver(
  source: ByteSource,
  destination: string,
  options: { readonly limits?: Partial<TreeLimits>; readonly prepare?: (tree: string) => Promise<void> } = {},
): Promise<LaidTree> {
  const staging = await makeStaging(destination);
  let leftover: string | undefined;
  let laid: Omit<LaidTree, 'leftover'>;
  try {
    const stored = await withWriter(staging.tree, (writer) => storeInto(source, writer, options.limits ?? {}));
    await options.prepare?.(staging.tree);
    laid = {
      ...stored,
      replaced: await layOver(staging.tree, staging.destination).catch((cause: unknown) => laidWrong(destination, cause)),
    };
  } finally {
    leftover = await removeTree(staging.folder);
  }
  return { ...laid, leftover };
}

function laidWrong(destination: string, cause: unknown): never {
  throw new CodedError('lay_over_failed', `the tree could not be laid over ${destination} (${codeOf(cause) ?? 'error'})`, {
    id: destination,
    action: 'A part of it may lie there. Check that the folder is one and its disk has room, then begin with a fresh one.',
    cause,
  });
}

async function storeInto(source: ByteSource, writer: TreeWriter, limits: Partial<TreeLimits>): Promise<Omit<StoredTree, 'leftover'>> {
  let entries = 0;
  let contentBytes = 0;
  const emptyFolders = await readEvents(source, limits, (event) => {
    if (event.kind === 'data') writer.write(event.bytes);
    else if (event.kind === 'entry-end') writer.closeFile();
    else if (event.kind === 'entry') {
      placeEntry(writer, byteKey(event.entry.path), event.entry);
      // Folders count when they turn out to be empty.
      if (event.entry.type !== 'directory') entries += 1;
      if (event.entry.type === 'file' || event.entry.type === 'copy') contentBytes += event.entry.size;
    }
  });
  return { entries: entries + emptyFolders.length, contentBytes };
}

async function unpackInto(source: ByteSource, writer: TreeWriter, options: UnpackOptions): Promise<ReadArchive> {
  const archive = await readArchive(source, writer, options.limits ?? {}, options);
  checkSnapshotId(archive.snapshotId, options.snapshotId);
  return archive;
}

async function withWriter<Value>(folder: string, use: (writer: TreeWriter) => Promise<Value>): Promise<Value> {
  let writer: TreeWriter | undefined;
  try {
    writer = new TreeWriter(folder);
    return await use(writer);
  } catch (error) {
    throw refusal(error);
  } finally {
    writer?.close();
  }
}

/** @throws CodedError `snapshot_mismatch` when another snapshot was wanted. */
export function checkSnapshotId(found: string, wanted: string | undefined): void {
  if (wanted === undefined || wanted === found) return;
  throw new CodedError('snapshot_mismatch', `snapshot ${found} arrived where ${wanted} was wanted`, {
    id: wanted,
    action: 'Nothing was changed. Fetch the snapshot again.',
  });
}
