import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { codeOf } from '@firecrew/base';
import type * as z from 'zod';

const PRIVATE = 0o600;

/** Most that is read of a file that another account may write, in bytes. */
const FOREIGN_MAX_BYTES = 16 * 1024;

/** Replaces a file as a whole (0600), so that a reader never sees half of it; `owner` gets it where the file is for another account. */
export function replaceFile(file: string, text: string, owner?: { readonly uid: number; readonly gid: number }): void {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  // Exclusive: the folder may be another account's, and no link of its making is written through.
  const handle = openSync(temporary, 'wx', PRIVATE);
  try {
    writeFileSync(handle, text);
    if (owner !== undefined) fchownSync(handle, owner.uid, owner.gid);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
}

/** Makes a file (0600) unless it is there; false when another one was first. */
export function createFile(file: string, text: string): boolean {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  writeFileSync(temporary, text, { mode: PRIVATE });
  try {
    // A link appears with its whole content, or not at all.
    linkSync(temporary, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** A text file, or undefined where there is none. */
export function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** A JSON file of the given shape; undefined where it is not there or of another shape. */
export function readState<T>(file: string, schema: z.ZodType<T>): T | undefined {
  return parseState(readText(file), schema);
}

/** The same for a file in another account's folder: no link is followed, no pipe waited for, and no more read than such a file can be. */
export function readForeignState<T>(file: string, schema: z.ZodType<T>): T | undefined {
  let handle: number;
  try {
    handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stats = fstatSync(handle);
    if (!stats.isFile() || stats.size > FOREIGN_MAX_BYTES) return undefined;
    const bytes = Buffer.alloc(FOREIGN_MAX_BYTES);
    return parseState(bytes.toString('utf8', 0, readSync(handle, bytes)), schema);
  } finally {
    closeSync(handle);
  }
}

function parseState<T>(text: string | undefined, schema: z.ZodType<T>): T | undefined {
  if (text === undefined) return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
