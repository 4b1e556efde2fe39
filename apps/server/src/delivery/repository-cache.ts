import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CodedError, type WorkspaceId } from '@firecrew/base';
import type { BlobStore } from '@firecrew/store';
import { MissionRepository, readIgnoreFiles, readManifestOfBlob } from '@firecrew/workspace';

/** Ignore rules of a commit, as they go into a turn's spec. */
export interface IgnoreFile {
  readonly dir: string;
  readonly text: string;
}

/** What a repository is rebuilt from: the pack that was uploaded or fetched, and the commits made on top of it. */
export interface RepositoryRecipe {
  readonly workspaceId: WorkspaceId;
  readonly packDigest: string;
  readonly shallow: readonly string[];
  readonly head: string;
  /** Makes what lies on top of the pack (a synthetic base) again and gives the base commit; it is deterministic. */
  readonly replay: (repository: MissionRepository, scratch: Scratch) => Promise<string>;
}

/** A private folder that is removed when the work in it is done. */
export type Scratch = (name: string) => string;

/**
 * The bare repositories of missions under one folder. They are a cache: what is missing is rebuilt from blobs, and a folder
 * without its mark of completeness is thrown away first.
 */
export class RepositoryCache {
  readonly #root: string;
  readonly #blobs: BlobStore;
  readonly #recipe: (missionId: string) => Promise<RepositoryRecipe | undefined>;
  readonly #opening = new Map<string, Promise<MissionRepository>>();

  constructor(root: string, blobs: BlobStore, recipe: (missionId: string) => Promise<RepositoryRecipe | undefined>) {
    this.#root = root;
    this.#blobs = blobs;
    this.#recipe = recipe;
  }

  /** The repository of a mission, rebuilt when it is not there. Throws `base_missing` for a mission without one. */
  async open(missionId: string): Promise<MissionRepository> {
    const known = this.#opening.get(missionId);
    if (known !== undefined) return await known;
    const opening = this.#open(missionId).finally(() => this.#opening.delete(missionId));
    this.#opening.set(missionId, opening);
    return await opening;
  }

  /** Runs `work` with a folder of its own below the cache, removed afterwards on every way out. */
  async withScratch<T>(work: (scratch: Scratch) => Promise<T>): Promise<T> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(this.#root, SCRATCH));
    try {
      return await work((name) => join(folder, name));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Copies a blob into a file, for a program that needs one. Throws `blob_damaged` for one that is not what it was stored as. */
  async blobToFile(workspaceId: WorkspaceId, digest: string, file: string): Promise<string> {
    const blob = await this.#blobs.open(workspaceId, digest);
    const hash = createHash('sha256');
    const digested = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(blob.stream, digested, createWriteStream(file, { flags: 'wx', mode: 0o600 }));
    if (hash.digest('hex') === digest) return file;
    throw new CodedError('blob_damaged', `blob ${digest} of the store has other bytes than its digest says`, {
      id: digest,
      action: 'Restore it from the backup of the blob store; an upload of the same files mends it too.',
    });
  }

  /** A private folder that the caller removes. */
  async keepScratch(): Promise<{ path: Scratch; remove(): Promise<void> }> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(this.#root, SCRATCH));
    return { path: (name) => join(folder, name), remove: () => rm(folder, { recursive: true, force: true }) };
  }

  /** The `.git` that a guest gets at `commit` together with the tree in the blob `tree`, as a blob; its digest. */
  async guestGit(missionId: string, workspaceId: WorkspaceId, commit: string, branch: string | null, tree: string): Promise<string> {
    const repository = await this.open(missionId);
    return await this.withScratch(async (scratch) => {
      const { entries } = await readManifestOfBlob(await this.blobToFile(workspaceId, tree, scratch('tree.blob')), { blobDigest: tree });
      await repository.makeGuestGit(commit, scratch('git.tar'), { manifest: entries, ...(branch === null ? {} : { branch }) });
      const stored = await this.#blobs.put(workspaceId, createReadStream(scratch('git.tar')), { maxBytes: MAX_GUEST_GIT_BYTES });
      return stored.digest;
    });
  }

  /** The ignore rules of a commit; none for a mission without a repository. */
  async ignoreFiles(missionId: string, commit: string | null): Promise<IgnoreFile[]> {
    if (commit === null) return [];
    const repository = await this.open(missionId);
    return await readIgnoreFiles(repository.dir, commit);
  }

  /** Removes folders that a server left when it died. Called once, before anything is opened. */
  async removeLeftovers(): Promise<void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#root))
      if (name.startsWith(SCRATCH)) await rm(join(this.#root, name), { recursive: true, force: true });
  }

  async remove(missionId: string): Promise<void> {
    await rm(join(this.#root, missionId), { recursive: true, force: true });
  }

  async #open(missionId: string): Promise<MissionRepository> {
    const dir = join(this.#root, missionId);
    if (await exists(join(dir, COMPLETE))) return await MissionRepository.init(dir);
    const recipe = await this.#recipe(missionId);
    if (recipe === undefined) throw new CodedError('base_missing', `mission ${missionId} has no repository`, { id: missionId });
    await this.build(missionId, recipe);
    return await MissionRepository.init(dir);
  }

  /** Makes the repository of a mission from its recipe and gives the base commit. Throws what the pack or its base deserve. */
  async build(missionId: string, recipe: RepositoryRecipe): Promise<string> {
    const dir = join(this.#root, missionId);
    return await this.withScratch(async (scratch) => {
      const fresh = scratch('repository');
      const repository = await MissionRepository.init(fresh);
      const pack = await this.blobToFile(recipe.workspaceId, recipe.packDigest, scratch('base.pack'));
      const shallow = recipe.shallow.length === 0 ? {} : { shallow: Buffer.from(recipe.shallow.map((line) => `${line}\n`).join('')) };
      await repository.importPack(pack, { head: recipe.head, ...shallow });
      const base = await recipe.replay(repository, scratch);
      await writeFile(join(fresh, COMPLETE), '', { mode: 0o600 });
      await rm(dir, { recursive: true, force: true });
      await rename(fresh, dir);
      return base;
    });
  }
}

/** Names of private folders begin with it; no mission id does. */
const SCRATCH = '_scratch-';
/** Stored bytes of one guest's `.git`. */
const MAX_GUEST_GIT_BYTES = 1024 * 1024 * 1024;
/** Written last: a repository without it was being made when its server died. */
const COMPLETE = 'firecrew-complete';

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
