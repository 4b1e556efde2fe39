import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { Architecture } from '../oci/choose-image.ts';
import type { ArtifactDigest, ArtifactFile, ArtifactManifest } from '../store/artifact-manifest.ts';
import { manifestId, parseManifest } from '../store/artifact-manifest.ts';
import { ArtifactNames } from '../store/artifact-names.ts';
import type { MissingArtifact } from '../store/boot-files.ts';
import type { ImageStore, StoredArtifact } from '../store/image-store.ts';
import { storeFailed, wrongDigest } from '../store/store-errors.ts';
import { chooseArtifact } from './choose-artifact.ts';
import { planTransfer, type TransferStep } from './plan-transfer.ts';

/** Where artifacts come from: another store, over whatever wire. Nothing it says is believed before it was read against its digest. */
export interface ArtifactOrigin {
  /** Its names, and what they lead to. */
  names(signal: AbortSignal): Promise<ReadonlyMap<string, ArtifactDigest>>;
  /** The bytes of a manifest, at most `MAX_MANIFEST_BYTES`. Throws `image_not_offered`. */
  manifest(id: ArtifactDigest, signal: AbortSignal): Promise<Buffer>;
  /** The bytes of a file from `from` on, or from the beginning if it cannot give a part: `from` of the answer says which. */
  file(
    id: ArtifactDigest,
    step: TransferStep,
    signal: AbortSignal,
  ): Promise<{ readonly from: number; readonly body: AsyncIterable<Uint8Array> }>;
}

/** What a host that fetches says about itself. */
export interface FetchOptions {
  /** Processor of this host's guests. */
  readonly architecture: Architecture;
  /** Bytes that stay free on the disk of the store. */
  readonly reserveBytes: number;
  readonly signal: AbortSignal;
  /** Told before a transfer begins and after each piece: bytes of files that are here, and of all files. */
  readonly onBytes: (keptBytes: number, sizeBytes: number) => void;
}

/**
 * Gets one artifact that a store lacks, into folders of the store: what has come stays there when it breaks, and the next call goes on from
 * it. It is published by its digest as a whole, then named. Throws `image_not_offered`, `image_digest_wrong`, `manifest_malformed`,
 * `image_kind_wrong`, `image_architecture_wrong`, `image_no_room`, `image_length_wrong`, `image_cut`, `image_store_failed`, and what the
 * origin throws.
 */
export async function fetchArtifact(
  store: ImageStore,
  origin: ArtifactOrigin,
  missing: MissingArtifact,
  options: FetchOptions,
): Promise<StoredArtifact> {
  const { signal } = options;
  const offered = missing.id === null ? await origin.names(signal) : new Map<string, ArtifactDigest>();
  const choice = chooseArtifact(missing, offered);
  if (choice.verdict === 'absent')
    throw new CodedError('image_not_offered', `the server has nothing named ${missing.reference} either`, {
      id: missing.reference,
      action: 'Make it on the server with firecrew image, or here.',
    });
  const { id, name } = choice;
  const manifestBytes = await origin.manifest(id, signal);
  if (manifestId(manifestBytes) !== id) throw wrongDigest(id, 'the manifest');
  checkManifest(id, parseManifest(manifestBytes), missing, options.architecture);
  const stored = await store.addInPieces(
    manifestBytes,
    (target, manifest) => transfer({ id, target, manifest, root: store.root, origin, options }),
    signal,
  );
  if (name !== null) await new ArtifactNames(store.root).set(name, id);
  return stored;
}

function checkManifest(id: ArtifactDigest, manifest: ArtifactManifest, wanted: MissingArtifact, architecture: Architecture): void {
  if (manifest.kind !== wanted.kind)
    throw new CodedError('image_kind_wrong', `${id} is a ${manifest.kind}, and a ${wanted.kind} is wanted`, {
      id,
      action: 'Name another one; firecrew image list says what each is.',
    });
  if (manifest.architecture !== architecture)
    throw new CodedError(
      'image_architecture_wrong',
      `${id} is for ${manifest.architecture}, and the VMs of this host are ${architecture}`,
      {
        id,
        action: 'Make one for the processor of this host, and let the settings of this node name it.',
      },
    );
}

interface Transfer {
  readonly id: ArtifactDigest;
  readonly target: string;
  readonly manifest: ArtifactManifest;
  readonly root: string;
  readonly origin: ArtifactOrigin;
  readonly options: FetchOptions;
}

async function transfer(work: Transfer): Promise<void> {
  const { id, target, manifest, root, origin, options } = work;
  const sizeBytes = manifest.files.reduce((sum, file) => sum + file.sizeBytes, 0);
  const room = { freeBytes: await freeBytesOf(root), reserveBytes: options.reserveBytes };
  const plan = planTransfer(manifest.files, await keptSizes(target, manifest.files), room);
  if (plan.verdict === 'no_room')
    throw new CodedError(
      'image_no_room',
      `${id} needs ${plan.bytes} bytes, which is ${plan.lackingBytes} more than the disk of ${root} has to give`,
      {
        id,
        action: 'Free space there, or set a smaller reserve (imageFetch.diskReserveMib).',
      },
    );
  let kept = plan.keptBytes;
  options.onBytes(kept, sizeBytes);
  for (const step of plan.steps) {
    const path = join(target, step.file.name);
    const handle = await openPiece(path, id);
    try {
      // Of an empty file there is nothing to ask for.
      if (step.file.sizeBytes === 0) continue;
      const { from, body } = await origin.file(id, step, options.signal);
      // From further on nothing is cut off: what another process may have written meanwhile is the same.
      if (from === 0) await handle.truncate(0);
      kept -= step.from - from;
      const onBytes = (bytes: number): void => {
        kept += bytes;
        options.onBytes(kept, sizeBytes);
      };
      await receive({ id, file: step.file, handle, from, body, signal: options.signal, onBytes });
    } finally {
      await handle.close();
    }
  }
}

interface Piece {
  readonly id: ArtifactDigest;
  readonly file: ArtifactFile;
  readonly handle: FileHandle;
  readonly from: number;
  readonly body: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
}

/** Writes a body to where it belongs: after every piece the length of the file is what is kept of it. */
async function receive({ id, file, handle, from, body, signal, onBytes }: Piece): Promise<void> {
  let at = from;
  for await (const part of read(body, id, file.name, signal)) {
    if (at + part.length > file.sizeBytes) {
      // What is longer than it may be is not the file that is wanted.
      await handle.truncate(0);
      throw new CodedError('image_length_wrong', `the server sends more of ${file.name} of ${id} than the ${file.sizeBytes} bytes it has`, {
        id,
        action: 'Look at what stands between this node and its server.',
      });
    }
    try {
      for (let done = 0; done < part.length; ) done += (await handle.write(part, done, part.length - done, at + done)).bytesWritten;
    } catch (cause) {
      throw storeFailed(`${file.name} of ${id} cannot be written`, id, cause);
    }
    at += part.length;
    onBytes(part.length);
  }
  if (at < file.sizeBytes)
    throw new CodedError('image_cut', `the transfer of ${file.name} of ${id} ended after ${at} of ${file.sizeBytes} bytes`, {
      id,
      action: 'Nothing: it goes on from there.',
    });
}

/** The connection fails in many ways and words; here they are one code. */
async function* read(body: AsyncIterable<Uint8Array>, id: string, name: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new CodedError('image_cut', `the transfer of ${name} of ${id} broke: ${messageOf(cause)}`, {
      id,
      action: 'Nothing: it goes on from there.',
      cause,
    });
  }
}

async function openPiece(path: string, id: string): Promise<FileHandle> {
  try {
    await mkdir(dirname(path), { recursive: true });
    return await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (cause) {
    throw storeFailed(`${path} cannot be written`, id, cause);
  }
}

/** Lengths of what is here of each file; what is no plain file was not left by a transfer. */
async function keptSizes(target: string, files: readonly ArtifactFile[]): Promise<ReadonlyMap<string, number>> {
  const kept = new Map<string, number>();
  for (const { name } of files) {
    const path = join(target, name);
    try {
      const stats = await lstat(path);
      if (stats.isFile()) kept.set(name, stats.size);
    } catch (cause) {
      if (codeOf(cause) !== 'ENOENT') throw storeFailed(`${path} cannot be read`, path, cause);
    }
  }
  return kept;
}

async function freeBytesOf(root: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(root);
    return bavail * bsize;
  } catch (cause) {
    throw storeFailed(`the room at ${root} cannot be read`, root, cause);
  }
}
