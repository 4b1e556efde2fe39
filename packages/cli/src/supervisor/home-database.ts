import { readdirSync } from 'node:fs';
import { CodedError, codeOf } from '@firecrew/base';
import * as z from 'zod';
import type { HomePaths } from '../home/home-paths.ts';
import { createFile, readState, readText, replaceFile } from '../home/write-file.ts';
import { DATABASE_SETTINGS, type HomeDatabase } from './decide-database.ts';

const homeDatabaseSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('own'), namedBy: z.enum(DATABASE_SETTINGS).nullable() }),
  z.strictObject({
    kind: z.literal('url'),
    host: z.string().min(1),
    port: z.int().min(1).max(65_535),
    database: z.string(),
    namedBy: z.enum(DATABASE_SETTINGS),
  }),
]);

/** The database that this home uses, undefined where it has none yet. Throws `home_damaged`. */
export function readHomeDatabase({ homeDatabase }: HomePaths): HomeDatabase | undefined {
  const known = readState(homeDatabase, homeDatabaseSchema);
  // One that cannot be read is no sign of a home without a database: it would get a new, empty one.
  if (known === undefined && readText(homeDatabase) !== undefined) {
    throw new CodedError('home_damaged', `${homeDatabase} is not what firecrew writes`, {
      id: homeDatabase,
      action: 'Restore it from a backup, or remove it and name the database with FIRECREW_DATABASE_URL (own: that of the home).',
    });
  }
  return known;
}

/** Writes down which database this home uses (0600, without a password); false when it had none and another call was first. */
export function rememberHomeDatabase({ homeDatabase }: HomePaths, database: HomeDatabase, before: HomeDatabase | undefined): boolean {
  const text = `${JSON.stringify(database)}\n`;
  if (before === undefined) return createFile(homeDatabase, text);
  replaceFile(homeDatabase, text);
  return true;
}

/** Whether the home has data of its own PostgreSQL, usable or not. */
export function hasOwnCluster({ dataDir }: HomePaths): boolean {
  try {
    return readdirSync(dataDir).length > 0;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
