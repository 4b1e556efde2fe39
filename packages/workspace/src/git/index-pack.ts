import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, type GitOptions, runGit } from './run-git.ts';

/** Git removes what begins so when it prunes: nothing stays for ever where this process was killed. */
const INCOMING_PREFIX = 'tmp_objdir-firecrew-';
const NO_ROOM = /No space left on device|Disk quota exceeded/;

/** Where objects are put. `objectDirectory` is `objects` of `gitDir` unless it is named. */
export type ObjectsPlace = Required<Pick<GitOptions, 'gitDir'>> & Pick<GitOptions, 'objectDirectory'>;

/**
 * Puts a pack into the objects at `place`. It is read and checked in a folder of its own beside them, and moved when it is whole: one that is
 * broken, or for which there is no room, leaves nothing behind.
 * Throws CodedError `pack_unreadable`, `disk_full`, `objects_unwritable`.
 */
export async function indexPack(place: ObjectsPlace, packFile: string, checks: readonly string[]): Promise<void> {
  const objects = place.objectDirectory ?? join(place.gitDir, 'objects');
  let incoming: string | undefined;
  try {
    incoming = await mkdtemp(join(objects, INCOMING_PREFIX));
    await runGit(['index-pack', '--stdin', '--fix-thin', ...checks], {
      gitDir: place.gitDir,
      objectDirectory: incoming,
      env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: quotePath(objects) },
      input: createReadStream(packFile),
      timeoutMs: GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
    await adopt(join(incoming, 'pack'), join(objects, 'pack'));
  } catch (error) {
    throw told(error, objects);
  } finally {
    if (incoming !== undefined) await rm(incoming, { recursive: true, force: true });
  }
}

/** Moves the files of a pack; its index comes last, since git believes in a pack by its index. */
async function adopt(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  const names = await readdir(from);
  const isIndex = (name: string): boolean => name.endsWith('.idx');
  for (const name of [...names.filter((one) => !isIndex(one)), ...names.filter(isIndex)]) await rename(join(from, name), join(to, name));
}

/** A path as git reads it in a list of alternates, which is divided at colons and at ends of lines but for those in quotes. */
export function quotePath(path: string): string {
  return `"${path.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;
}

function told(error: unknown, objects: string): unknown {
  const code = codeOf(error) ?? '';
  if (['ENOSPC', 'EDQUOT'].includes(code) || (code === 'git_failed' && NO_ROOM.test(messageOf(error)))) {
    return new CodedError('disk_full', `there is no room for the pack in ${objects}`, {
      id: objects,
      action: 'Free space there and fetch again; the server keeps the work.',
      cause: error,
    });
  }
  if (['EACCES', 'EPERM', 'EROFS'].includes(code)) {
    return new CodedError('objects_unwritable', `nothing can be written into ${objects} (${code})`, {
      id: objects,
      action: 'Fetch as the owner of the repository, or into another one; the server keeps the work.',
      cause: error,
    });
  }
  if (code !== 'git_failed') return error;
  return new CodedError('pack_unreadable', `a pack could not be read: ${messageOf(error)}`, { cause: error });
}
