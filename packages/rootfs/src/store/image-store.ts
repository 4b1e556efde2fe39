import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import {
  type ArtifactDigest,
  type ArtifactFacts,
  type ArtifactFile,
  type ArtifactKind,
  type ArtifactManifest,
  artifactIdSchema,
  encodeManifest,
  MAX_MANIFEST_BYTES,
  manifestId,
  parseManifest,
} from './artifact-manifest.ts';
import { hashHandle } from './hash-file.ts';
import { READ_ONLY, sameFiles, sealFiles, sync, WALKABLE } from './seal-files.ts';
import { storeFailed, unknownArtifact, wrongDigest } from './store-errors.ts';

/** Folders of artifacts that are being made; a crash leaves them behind, and {@link ImageStore.listAbandoned} names them. */
const STAGING_PREFIX = 'making-';
/** The same of one artifact that comes in pieces, with the digest of its id: what has come is kept for the next call. */
const PIECES_PREFIX = `${STAGING_PREFIX}fetched-`;
/** File of an artifact beside those its manifest lists. */
export const MANIFEST_FILE = 'manifest.json';
/** Characters of the end of a digest that name an artifact. */
const SHORT_ID_MIN_CHARS = 3;

const FOLDER_NAME = /^[0-9a-f]{64}$/;

/** What one artifact of the store is. */
export interface StoredArtifact {
  readonly id: ArtifactDigest;
  readonly manifest: ArtifactManifest;
  /** The manifest as it is stored: its digest is the id. */
  readonly manifestBytes: Buffer;
  /** Of its folder. Files in it are named by the manifest, and never written again. */
  readonly folder: string;
  /** Bytes of its files together. */
  readonly sizeBytes: number;
}

/** A file that several VMs may read, held open by whoever opened it. */
export interface SharedFile {
  readonly path: string;
  readonly handle: FileHandle;
}

/** A file of an artifact that was verified and is held open: what is read through the handle is what was verified. */
export interface VerifiedFile extends ArtifactFile, SharedFile {}

/** A verified artifact; `close` lets go of its files. */
export interface OpenArtifact extends StoredArtifact {
  readonly files: ReadonlyMap<string, VerifiedFile>;
  close(): Promise<void>;
}

/** Folders that a builder may write to; both lie on the disk of the store, and are gone when it has ended. */
export interface StagingFolders {
  /** Gets the files of the artifact. */
  readonly target: string;
  /** For what is needed on the way. */
  readonly work: string;
}

/** An artifact that was not read, and why; it is kept, and never reported as missing. */
export interface DamagedArtifact {
  readonly id: ArtifactDigest;
  readonly error: CodedError;
}

/**
 * Images, kernels and payloads by content. An artifact is a folder `images/<sha256>` that appears as a whole and is never changed: its id is
 * the digest of its manifest, which holds name, size and digest of every file, so that any range of any file can be fetched and checked later.
 */
export class ImageStore {
  readonly root: string;
  readonly #images: string;

  constructor(root: string) {
    this.root = root;
    this.#images = join(root, 'images');
  }

  /** Runs a builder and keeps what it wrote. The same content again gives the same id and is stored once. Throws `image_store_failed`. */
  async add(build: (folders: StagingFolders) => Promise<ArtifactFacts>, signal?: AbortSignal): Promise<StoredArtifact> {
    const staging = await this.#stage();
    try {
      const folders = { target: join(staging, 'target'), work: join(staging, 'work') };
      await mkdir(folders.target, { mode: WALKABLE });
      await mkdir(folders.work, { mode: 0o700 });
      const facts = await build(folders);
      const files = await sealFiles(folders.target, signal);
      const { bytes, id } = encodeManifest({ manifest: 1, ...facts, files });
      return await this.#publish(folders.target, id, bytes);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }

  /** Keeps files that another store listed: they must be exactly those of the manifest. Throws `image_digest_wrong`, `manifest_malformed`. */
  async addExact(manifestBytes: Buffer, write: (target: string, manifest: ArtifactManifest) => Promise<void>): Promise<StoredArtifact> {
    const manifest = parseManifest(manifestBytes);
    const id = manifestId(manifestBytes);
    const staging = await this.#stage();
    try {
      const target = join(staging, 'target');
      await mkdir(target, { mode: WALKABLE });
      await write(target, manifest);
      const found = await sealFiles(target);
      if (!sameFiles(found, manifest.files)) throw wrongDigest(id, 'a file');
      return await this.#publish(target, id, manifestBytes);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }

  /**
   * Keeps files that come in pieces: `write` gets the folder as earlier calls for the same manifest left it, also those of another process,
   * and what it has written stays when it fails. A file that is not what the manifest says is thrown away, so that it is not believed again.
   * Throws `image_digest_wrong`, `manifest_malformed`, `image_store_failed`, and what `write` throws.
   */
  async addInPieces(
    manifestBytes: Buffer,
    write: (target: string, manifest: ArtifactManifest) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<StoredArtifact> {
    const manifest = parseManifest(manifestBytes);
    const id = manifestId(manifestBytes);
    const staging = join(this.root, piecesFolder(id));
    const target = join(staging, 'target');
    try {
      await this.#makeRoot();
      await mkdir(target, { recursive: true, mode: WALKABLE });
      // Left by a process that was killed when all but the last step was done.
      await rm(join(target, MANIFEST_FILE), { force: true });
    } catch (cause) {
      throw storeFailed(`the image store ${this.root} cannot be written`, this.root, cause);
    }
    await write(target, manifest);
    const found = await sealFiles(target, signal);
    const wrong = found.filter((file) => !manifest.files.some((wanted) => sameFiles([file], [wanted])));
    for (const { name } of wrong) await rm(join(target, name), { force: true });
    if (!sameFiles(found, manifest.files)) throw wrongDigest(id, wrong[0]?.name ?? 'a file');
    const stored = await this.#publish(target, id, manifestBytes);
    await rm(staging, { recursive: true, force: true });
    return stored;
  }

  /** Every artifact by its manifest, and those whose manifest is damaged; contents are not read. Throws `image_store_failed`. */
  async list(): Promise<{ readonly artifacts: readonly StoredArtifact[]; readonly damaged: readonly DamagedArtifact[] }> {
    const artifacts: StoredArtifact[] = [];
    const damaged: DamagedArtifact[] = [];
    for (const name of await this.#folders()) {
      const id: ArtifactDigest = `sha256:${name}`;
      try {
        artifacts.push(await this.#read(id));
      } catch (error) {
        // Removed while the list was read.
        if (codeOf(error) === 'image_unknown') continue;
        if (!(error instanceof CodedError)) throw error;
        damaged.push({ id, error });
      }
    }
    return { artifacts, damaged };
  }

  /** The artifact of an id, or of the last characters of one. Throws `image_unknown`, `image_ambiguous_id`, `image_digest_wrong`. */
  async find(wanted: string): Promise<StoredArtifact> {
    const tail = wanted.startsWith('sha256:') ? wanted.slice('sha256:'.length) : wanted;
    if (!/^[0-9a-f]+$/.test(tail) || tail.length < SHORT_ID_MIN_CHARS) throw unknownArtifact(wanted);
    const names = (await this.#folders()).filter((name) => (tail.length === 64 ? name === tail : name.endsWith(tail)));
    const [only] = names;
    if (only === undefined) throw unknownArtifact(wanted);
    if (names.length > 1)
      throw new CodedError('image_ambiguous_id', `${wanted} is the end of ${names.length} ids`, { id: wanted, action: 'Give more of it.' });
    return await this.#read(`sha256:${only}`);
  }

  /**
   * Opens every file of an artifact and reads all of it against its digest: what comes back is held open, so nothing can take its place
   * between this check and its use. `kind` refuses others. Throws `image_unknown`, `image_kind_wrong`, `image_digest_wrong`.
   */
  async openVerified(id: ArtifactDigest, kind?: ArtifactKind, signal?: AbortSignal): Promise<OpenArtifact> {
    const stored = await this.#read(id);
    if (kind !== undefined && stored.manifest.kind !== kind)
      throw new CodedError('image_kind_wrong', `${id} is a ${stored.manifest.kind}, and a ${kind} is wanted`, {
        id,
        action: 'Name another one; firecrew image list says what each is.',
      });
    const files = new Map<string, VerifiedFile>();
    const close = async (): Promise<void> => {
      for (const { handle } of files.values()) await handle.close();
    };
    try {
      for (const file of stored.manifest.files) {
        const path = join(stored.folder, file.name);
        const handle = await openFile(path, id);
        files.set(file.name, { ...file, path, handle });
        const found = await hashHandle(handle, signal);
        if (found.sizeBytes !== file.sizeBytes || found.sha256 !== file.sha256) throw wrongDigest(id, file.name);
      }
      return { ...stored, files, close };
    } catch (error) {
      await close();
      throw error;
    }
  }

  /**
   * Opens the file of an artifact that has this SHA-256 (hex): its name comes from the manifest, and its size is what that says. Its bytes
   * are not read against the digest here. The caller closes the handle. Throws `image_unknown`, `image_digest_wrong`, `image_store_failed`.
   */
  async openFile(id: ArtifactDigest, sha256: string): Promise<ArtifactFile & { readonly handle: FileHandle }> {
    const stored = await this.#read(id);
    const file = stored.manifest.files.find((item) => item.sha256 === sha256);
    if (file === undefined) throw unknownArtifact(sha256);
    const path = join(stored.folder, file.name);
    const handle = await openFile(path, id);
    if ((await handle.stat()).size === file.sizeBytes) return { ...file, handle };
    await handle.close();
    throw wrongDigest(id, file.name);
  }

  /** Removes one artifact. Whoever holds its files open keeps them. Throws `image_unknown`, `image_store_failed`. */
  async remove(id: ArtifactDigest): Promise<void> {
    const folder = this.#folderOf(id);
    const gone = join(this.root, `${STAGING_PREFIX}removed-${id.slice(-16)}-${process.pid}-${Date.now()}`);
    try {
      // It leaves its name at once: nobody finds a half of it.
      await rename(folder, gone);
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') throw unknownArtifact(id);
      throw storeFailed(`${folder} cannot be removed`, id, cause);
    }
    await rm(gone, { recursive: true, force: true });
  }

  /** Folders of makers that have not been touched for `olderThanMs`, by name: left by a crash. */
  async listAbandoned(nowMs: number, olderThanMs: number): Promise<readonly string[]> {
    const found: string[] = [];
    for (const name of await namesIn(this.root)) {
      if (!name.startsWith(STAGING_PREFIX)) continue;
      const last = await lastTouched(join(this.root, name));
      if (last !== undefined && nowMs - last > olderThanMs) found.push(name);
    }
    return found;
  }

  /** Takes away a folder that {@link listAbandoned} named. */
  async removeAbandoned(name: string): Promise<void> {
    if (name.startsWith(STAGING_PREFIX) && !name.includes('/')) await rm(join(this.root, name), { recursive: true, force: true });
  }

  async #stage(): Promise<string> {
    try {
      await this.#makeRoot();
      return await mkdtemp(join(this.root, STAGING_PREFIX));
    } catch (cause) {
      throw storeFailed(`the image store ${this.root} cannot be written`, this.root, cause);
    }
  }

  async #makeRoot(): Promise<void> {
    await mkdir(this.#images, { recursive: true });
    // The mask of this process may have taken rights away that the accounts of VMs need.
    for (const folder of [this.root, this.#images]) await chmod(folder, WALKABLE);
  }

  async #publish(target: string, id: ArtifactDigest, manifestBytes: Buffer): Promise<StoredArtifact> {
    const folder = this.#folderOf(id);
    try {
      await writeFile(join(target, MANIFEST_FILE), manifestBytes, { flag: 'wx', mode: READ_ONLY });
      await chmod(join(target, MANIFEST_FILE), READ_ONLY);
      await sync(join(target, MANIFEST_FILE));
      await chmod(target, WALKABLE);
      await sync(target);
      await rename(target, folder);
      await sync(this.#images);
    } catch (cause) {
      // The same content was stored before or meanwhile. Should that copy be damaged, this one takes its place.
      if (codeOf(cause) !== 'ENOTEMPTY' && codeOf(cause) !== 'EEXIST') throw storeFailed(`${id} cannot be stored`, id, cause);
      if (!(await this.#isWhole(id))) {
        await this.remove(id);
        await rename(target, folder);
        await sync(this.#images);
      }
    }
    return await this.#read(id);
  }

  async #isWhole(id: ArtifactDigest): Promise<boolean> {
    try {
      await (await this.openVerified(id)).close();
      return true;
    } catch (error) {
      if (codeOf(error) === 'image_digest_wrong') return false;
      throw error;
    }
  }

  async #read(id: ArtifactDigest): Promise<StoredArtifact> {
    const folder = this.#folderOf(id);
    const path = join(folder, MANIFEST_FILE);
    let bytes: Buffer;
    try {
      const { size } = await stat(path);
      if (size > MAX_MANIFEST_BYTES) throw wrongDigest(id, 'the manifest');
      bytes = await readFile(path);
    } catch (cause) {
      if (cause instanceof CodedError) throw cause;
      const folderGone = await lstat(folder).then(
        () => false,
        (error: unknown) => codeOf(error) === 'ENOENT',
      );
      if (folderGone) throw unknownArtifact(id);
      if (codeOf(cause) === 'ENOENT') throw wrongDigest(id, 'the manifest');
      throw storeFailed(`${path} cannot be read`, id, cause);
    }
    if (manifestId(bytes) !== id) throw wrongDigest(id, 'the manifest');
    const manifest = parseManifest(bytes);
    return { id, manifest, manifestBytes: bytes, folder, sizeBytes: manifest.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  }

  #folderOf(id: ArtifactDigest): string {
    if (!artifactIdSchema.safeParse(id).success) throw unknownArtifact(id);
    return join(this.#images, id.slice('sha256:'.length));
  }

  async #folders(): Promise<readonly string[]> {
    return (await namesIn(this.#images)).filter((name) => FOLDER_NAME.test(name)).sort();
  }
}

/** Name of the folder that {@link ImageStore.addInPieces} keeps the pieces of an artifact in. */
export function piecesFolder(id: ArtifactDigest): string {
  return `${PIECES_PREFIX}${id.slice('sha256:'.length)}`;
}

/** Names in a folder; none where it is not there. Throws `image_store_failed`. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw storeFailed(`${folder} cannot be read`, folder, cause);
  }
}

async function openFile(path: string, id: ArtifactDigest): Promise<FileHandle> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
    throw wrongDigest(id, path);
  } catch (cause) {
    if (cause instanceof CodedError) throw cause;
    if (codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ELOOP') throw wrongDigest(id, path);
    throw storeFailed(`${path} cannot be read`, id, cause);
  }
}

/** The last change of a folder or of what lies directly in it, in milliseconds since 1970; undefined when it is gone. */
async function lastTouched(folder: string): Promise<number | undefined> {
  try {
    const times = [(await stat(folder)).mtimeMs];
    for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
      times.push((await lstat(join(entry.parentPath, entry.name))).mtimeMs);
    return Math.max(...times);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
