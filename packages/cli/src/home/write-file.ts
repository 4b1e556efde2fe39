import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { codeOf } from '@firecrew/base';
import type { z } from 'zod';

const PRIVATE = 0o600;

/** Replaces a file as a whole (0600), so that a reader never sees half of it. */
export function replaceFile(file: string, text: string): void {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  writeFileSync(temporary, text, { mode: PRIVATE });
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
  const text = readText(file);
  if (text === undefined) return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
