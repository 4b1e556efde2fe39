import { chmod, lchown, lstat, mkdir, opendir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { LinkStream } from '@firecrew/link';
import type { HostRequest } from '@firecrew/protocol';
import { replaceTree, unpackTree } from '@firecrew/workspace';
import type { ExecUser } from '../agent-config.ts';
import { extractWithTar, findGnuTar } from './extract-with-tar.ts';
import { hasMoreThan } from './peek-bytes.ts';

type PutRequest = Extract<HostRequest, { t: 'put' }>;

/** Folders whose modes are changed in one tree, at most. */
const MAX_FOLDERS = 500_000;
const READ_ONLY_FOLDER = 0o555;
const WRITABLE_FOLDER = 0o755;
/** Archives up to this size are unpacked here: starting a program takes longer. */
const OWN_CODEC_BYTES = 1024 * 1024;
const CARRIED_OVER = ['.git'];

/**
 * Unpacks the bytes of a stream into a fresh folder that takes the place of the target as a whole; a host-made `.git` in it stays.
 * The tree becomes `user`'s, unless it is read-only.
 * Throws the codes of `unpackTree`, and Node's for a parent that cannot be made.
 */
export async function receiveTree(
  stream: LinkStream,
  request: PutRequest,
  user: ExecUser | null = null,
): Promise<{ entries: number; bytes: number }> {
  const { path, readOnly, maxBytes } = request;
  await mkdir(dirname(path), { recursive: true, mode: WRITABLE_FOLDER });
  // A read-only folder cannot be moved away by its owner.
  if (await exists(path)) await changeModes(path, WRITABLE_FOLDER, () => undefined);
  const stored = await storeTree(stream, path, maxBytes);
  if (readOnly) await changeModes(path, READ_ONLY_FOLDER, (mode) => ((mode & 0o100) === 0 ? 0o444 : 0o555));
  else if (user !== null) await giveTree(path, user);
  return stored;
}

async function storeTree(stream: LinkStream, path: string, maxBytes: number): Promise<{ entries: number; bytes: number }> {
  const limits = { maxTotalBytes: maxBytes, maxFileBytes: maxBytes };
  const { isMore, bytes } = await hasMoreThan(bytesOf(stream), OWN_CODEC_BYTES);
  const tar = isMore ? await findGnuTar() : undefined;
  if (tar === undefined) {
    const tree = await unpackTree(bytes, path, { limits, carryOver: CARRIED_OVER });
    return { entries: tree.entries.length, bytes: tree.contentBytes };
  }
  const { value } = await replaceTree(path, CARRIED_OVER, (folder) => extractWithTar(tar, bytes, folder, limits));
  return { entries: value.entries, bytes: value.contentBytes };
}

/** The stream's bytes; a reader that stops early leaves the stream open for the answer. */
async function* bytesOf(stream: LinkStream): AsyncGenerator<Uint8Array> {
  for await (const part of stream.iterator({ destroyOnReturn: false })) if (part instanceof Uint8Array) yield part;
}

/** Gives every folder of a tree a mode, and every file what `fileMode` makes of its own; links are left alone. */
async function changeModes(root: string, folderMode: number, fileMode: (mode: number) => number | undefined): Promise<void> {
  if (!(await lstat(root)).isDirectory()) return;
  await chmod(root, WRITABLE_FOLDER);
  const folders = [root];
  for (let at = 0; at < folders.length && at < MAX_FOLDERS; at += 1) {
    const folder = folders[at] ?? root;
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        await chmod(path, WRITABLE_FOLDER);
        folders.push(path);
      } else if (entry.isFile()) {
        const mode = fileMode((await lstat(path)).mode);
        if (mode !== undefined) await chmod(path, mode);
      }
    }
  }
  if (folderMode !== WRITABLE_FOLDER) for (const folder of folders.reverse()) await chmod(folder, folderMode);
}

/** Makes a tree an account's, links as links. */
async function giveTree(root: string, { uid, gid }: ExecUser): Promise<void> {
  await lchown(root, uid, gid);
  const folders = [root];
  for (let at = 0; at < folders.length && at < MAX_FOLDERS; at += 1) {
    const folder = folders[at] ?? root;
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      await lchown(path, uid, gid);
      if (entry.isDirectory()) folders.push(path);
    }
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
