import { chmod, lchown, lstat, mkdir, opendir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { LinkStream } from '@firecrew/link';
import type { HostRequest, PutEnd } from '@firecrew/protocol';
import { storeTree, storeTreeOver, takeTreeOut } from '@firecrew/workspace';
import type { ExecUser } from '../agent-config.ts';

type PutRequest = Extract<HostRequest, { t: 'put' }>;

/** Folders whose modes are changed in one tree, at most. */
const MAX_FOLDERS = 500_000;
const READ_ONLY_FOLDER = 0o555;
const WRITABLE_FOLDER = 0o755;
const CARRIED_OVER = ['.git'];

/** Carries out a put. Throws what the three ways of it throw. */
export async function receivePut(stream: LinkStream, request: PutRequest, user: ExecUser | null): Promise<Omit<PutEnd, 'ok'>> {
  if (request.onto === 'over') return await receiveTreeOver(stream, request, user);
  if (request.onto === 'out') return await receiveTreeOut(stream, request);
  return await receiveTree(stream, request, user);
}

/** Lays a tree over what a set-up has left in a folder. Only the tree is given to `user`: a change of owner would copy every file of a layer. */
async function receiveTreeOver(stream: LinkStream, { path, maxBytes }: PutRequest, user: ExecUser | null): Promise<Omit<PutEnd, 'ok'>> {
  // The host makes the one that counts, and puts it in the place of none.
  await rm(join(path, '.git'), { recursive: true, force: true });
  const { entries, contentBytes, replaced } = await storeTreeOver((take) => stream.consume(take), path, {
    limits: { maxTotalBytes: maxBytes, maxFileBytes: maxBytes },
    ...(user === null ? {} : { prepare: (tree: string) => giveTree(tree, user) }),
  });
  return { entries, bytes: contentBytes, replaced };
}

async function receiveTreeOut(stream: LinkStream, { path, maxBytes }: PutRequest): Promise<Omit<PutEnd, 'ok'>> {
  const out = await takeTreeOut((take) => stream.consume(take), path, { maxTotalBytes: maxBytes, maxFileBytes: maxBytes });
  return { entries: out.removed + out.absent + out.differing, bytes: 0, out: { ...out, named: [...out.named] } };
}

/**
 * Unpacks the bytes of a stream into a fresh folder that takes the place of the target as a whole; a host-made `.git` in it stays.
 * The tree becomes `user`'s, unless it is read-only.
 * Throws the codes of `storeTree`, and Node's for a parent that cannot be made.
 */
export async function receiveTree(
  stream: LinkStream,
  request: PutRequest,
  user: ExecUser | null = null,
): Promise<{ entries: number; bytes: number }> {
  const { path, readOnly, maxBytes } = request;
  await mkdir(dirname(path), { recursive: true, mode: WRITABLE_FOLDER });
  // A read-only folder cannot be moved away by its owner.
  if (await exists(path)) await changeModes(path, WRITABLE_FOLDER);
  const limits = { maxTotalBytes: maxBytes, maxFileBytes: maxBytes };
  const { entries, contentBytes } = await storeTree((take) => stream.consume(take), path, { limits, carryOver: CARRIED_OVER });
  if (readOnly) await changeModes(path, READ_ONLY_FOLDER, (mode) => ((mode & 0o100) === 0 ? 0o444 : 0o555));
  else if (user !== null) await giveTree(path, user);
  return { entries, bytes: contentBytes };
}

/** Gives every folder of a tree a mode, and every file what `fileMode` makes of its own, if given; links are left alone. */
async function changeModes(root: string, folderMode: number, fileMode?: (mode: number) => number): Promise<void> {
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
      } else if (fileMode !== undefined && entry.isFile()) await chmod(path, fileMode((await lstat(path)).mode));
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
