import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, readdir, rename, rm, stat, statfs, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { SharedFile } from '../store/image-store.ts';
import { readDiskState } from './disk-state.ts';
import type { LayerKey } from './layer-key.ts';
import { isUsed, markUse } from './layer-users.ts';
import { type KeptLayer, type LayerBounds, planLayerCollection } from './plan-layer-collection.ts';

const KEY = /^[0-9a-f]{64}$/;
const STAGING_PREFIX = 'making-';
const READ_ONLY = 0o444;
const PRIVATE = 0o700;
const BLOCK_BYTES = 512;
/** Time after which what a process that died was putting here is taken away, in `ms`. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

/** What a store may take up. */
export interface LayerStoreBounds extends LayerBounds {
  /** Bytes of the file system that layers leave free. */
  readonly reserveBytes: number;
}

/** A layer in use: its disk is held open, and no collector takes it away. */
export interface OpenLayer extends SharedFile {
  readonly key: LayerKey;
  /** Lets go of it. */
  close(): Promise<void>;
}

/**
 * Disks that set-ups have left, by their key: `<key>/disk` appears as a whole and is never changed. What is on them is a guest's: nothing here
 * reads more of it than its state.
 */
export class LayerStore {
  readonly root: string;
  readonly #bounds: LayerStoreBounds;

  constructor(root: string, bounds: LayerStoreBounds) {
    this.root = root;
    this.#bounds = bounds;
  }

  /** Makes the folder of the store. Throws `layer_store_failed`. */
  async prepare(): Promise<void> {
    await this.#guard('the folder cannot be made', async () => {
      await mkdir(this.root, { recursive: true, mode: PRIVATE });
      await chmod(this.root, PRIVATE);
    });
  }

  /** The layer of a key, marked as used now; undefined where there is none. Throws `layer_store_failed`. */
  async open(key: LayerKey): Promise<OpenLayer | undefined> {
    const folder = this.#folderOf(key);
    return await this.#guard(`the layer ${key} cannot be opened`, async () => {
      let mark: string | undefined;
      let handle: FileHandle | undefined;
      try {
        mark = await markUse(join(folder, 'users'));
        const path = join(folder, 'disk');
        handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
        if (!(await handle.stat()).isFile()) throw new Error(`${path} is no file`);
        const now = new Date();
        await utimes(folder, now, now);
        return { key, path, handle, close: closer(handle, mark) };
      } catch (error) {
        await handle?.close();
        if (mark !== undefined) await rm(mark, { force: true });
        if (codeOf(error) === 'ENOENT') return undefined;
        throw error;
      }
    });
  }

  /**
   * Takes the disk of a VM that has ended in order, by moving it here. Throws `layer_refused` for one that is no clean file system or has no room,
   * `layer_store_failed`; the disk is then where it was, or gone. What another put here under this key meanwhile stays.
   */
  async publish(key: LayerKey, disk: string, nowMs: number): Promise<void> {
    const folder = this.#folderOf(key);
    const staging = join(this.root, `${STAGING_PREFIX}${randomBytes(8).toString('hex')}`);
    const state = await this.#guard(`the disk for the layer ${key} cannot be read`, () => readDiskState(disk));
    if (state !== 'clean') throw refused(key, `its disk is ${state}`);
    const bytes = await this.#guard(`the disk for the layer ${key} cannot be read`, () => allocatedBytes(disk));
    await this.#makeRoom(key, bytes, nowMs);
    await this.#guard(`the layer ${key} cannot be kept`, async () => {
      try {
        await mkdir(staging, { mode: PRIVATE });
        await seal(disk);
        await rename(disk, join(staging, 'disk'));
        await sync(staging);
        await rename(staging, folder);
        await sync(this.root);
      } catch (error) {
        if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error;
      } finally {
        await rm(staging, { recursive: true, force: true });
      }
    });
  }

  /** Refuses to begin a layer for which there is no room now. Throws `layer_refused`, `layer_store_failed`. */
  async demandRoom(key: LayerKey, nowMs: number): Promise<void> {
    await this.#makeRoom(key, 0, nowMs);
  }

  /** Removes a layer; whoever holds it open keeps it. */
  async remove(key: LayerKey): Promise<void> {
    const gone = join(this.root, `${STAGING_PREFIX}removed-${randomBytes(8).toString('hex')}`);
    await this.#guard(`the layer ${key} cannot be removed`, async () => {
      try {
        await rename(this.#folderOf(key), gone);
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return;
        throw error;
      }
      await rm(gone, { recursive: true, force: true });
    });
  }

  /** What is here; none where there is no store yet. Throws `layer_store_failed`. */
  async list(): Promise<readonly KeptLayer[]> {
    return await this.#guard('it cannot be read', async () => {
      const layers: KeptLayer[] = [];
      for (const key of (await this.#names()).filter((name) => KEY.test(name))) {
        const folder = this.#folderOf(key);
        const stats = await whereThere(stat(folder));
        // Removed meanwhile; one whose disk somebody took away is old some day.
        if (stats === undefined) continue;
        const bytes = (await whereThere(allocatedBytes(join(folder, 'disk')))) ?? 0;
        layers.push({ key, bytes, lastUsedMs: stats.mtimeMs, inUse: await isUsed(join(folder, 'users')) });
      }
      return layers;
    });
  }

  /** Removes what the bounds let go, and what makers that died have left; gives the keys of the layers. Throws `layer_store_failed`. */
  async collect(nowMs: number, incomingBytes = 0): Promise<readonly LayerKey[]> {
    const going = planLayerCollection(await this.list(), this.#bounds, { nowMs, incomingBytes });
    for (const key of going) await this.remove(key);
    await this.#guard('it cannot be cleaned', async () => {
      for (const name of (await this.#names()).filter((entry) => entry.startsWith(STAGING_PREFIX))) {
        const stats = await whereThere(stat(join(this.root, name)));
        if (stats !== undefined && nowMs - stats.mtimeMs > ABANDONED_AFTER_MS)
          await rm(join(this.root, name), { recursive: true, force: true });
      }
    });
    return going;
  }

  async #makeRoom(key: LayerKey, bytes: number, nowMs: number): Promise<void> {
    const { maxBytes, reserveBytes } = this.#bounds;
    if (bytes > maxBytes) throw refused(key, `it takes ${bytes} bytes, and all layers together may take ${maxBytes}`);
    await this.collect(nowMs, bytes);
    const free = await this.#guard('its file system cannot be asked', async () => {
      const { bavail, bsize } = await statfs(this.root);
      return bavail * bsize;
    });
    if (free < reserveBytes) throw refused(key, `${free} bytes of the disk are free, and ${reserveBytes} are to stay so`);
  }

  async #names(): Promise<string[]> {
    try {
      return (await readdir(this.root)).sort();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  async #guard<Value>(what: string, work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof CodedError) throw cause;
      throw new CodedError('layer_store_failed', `the store of layers ${this.root}: ${what}: ${messageOf(cause)}`, {
        id: this.root,
        action: 'Check the room and the rights there. Set-ups run in each VM meanwhile.',
        cause,
      });
    }
  }

  #folderOf(key: LayerKey): string {
    if (!KEY.test(key)) throw new TypeError(`${JSON.stringify(key)} is no key of a layer`);
    return join(this.root, key);
  }
}

function closer(handle: FileHandle, mark: string): () => Promise<void> {
  return async () => {
    await handle.close();
    await rm(mark, { force: true });
  };
}

/** Makes a disk ours, read-only and durable: its VM's user was its owner. */
async function seal(disk: string): Promise<void> {
  const handle = await open(disk, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    if ((await handle.stat()).uid !== uid) await handle.chown(uid, gid);
    await handle.chmod(READ_ONLY);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function whereThere<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function allocatedBytes(file: string): Promise<number> {
  return (await stat(file)).blocks * BLOCK_BYTES;
}

async function sync(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function refused(key: LayerKey, why: string): CodedError {
  return new CodedError('layer_refused', `the layer ${key} is not kept: ${why}`, {
    id: key,
    action: 'Nothing has to be done: the set-up runs in each VM. Raise the bounds of the store to keep it next time.',
  });
}
