import { randomBytes } from 'node:crypto';
import { chown, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import type { DatabaseUser } from './database-user.ts';
import type { RunnableBinaries } from './install-binaries.ts';
import { INITDB_ORPHAN_MS, STOP_IMMEDIATE_MS } from './limits.ts';
import { runProgram } from './run-program.ts';
import { endBackends } from './settle-orphan.ts';

/** The role that owns everything of Firecrew's in an embedded server. */
export const DATABASE_ROLE = 'firecrew';

/** Form of the password that a new directory gets. */
const PASSWORD = /^[A-Za-z0-9_-]{32}$/;

/** What is needed to make or check a data directory. */
export interface ClusterOptions {
  readonly dataDir: string;
  readonly binaries: RunnableBinaries;
  readonly user: DatabaseUser | undefined;
  /** False only where a loss of the whole database is harmless (tests). */
  readonly durable: boolean;
}

/**
 * Makes the data directory when there is none, checks it when there is one, and returns the role's password.
 * A new one is made beside its place and renamed, since a directory whose making was interrupted never opens. To be called under the
 * directory's lock. Throws `database_version_mismatch`, `database_folder_unknown`, `database_folder_damaged`, `database_password_missing`, `database_wrong_owner`.
 */
export async function ensureCluster(options: ClusterOptions): Promise<string> {
  const { dataDir } = options;
  await removeLeftovers(dataDir);
  const found = await readVersion(dataDir);
  if (found === undefined) return createCluster(options);
  if (!/^\d+$/.test(found)) {
    throw new CodedError('database_folder_damaged', `${join(dataDir, 'PG_VERSION')} does not name a version of PostgreSQL`, {
      id: dataDir,
      action: 'Restore the folder from a backup; a disk that was full while it was copied leaves such files.',
    });
  }
  const wanted = await binaryMajor(options);
  if (found !== wanted) {
    throw new CodedError(
      'database_version_mismatch',
      `${dataDir} was made by PostgreSQL ${found}, these programs are PostgreSQL ${wanted}`,
      {
        id: dataDir,
        action: `Dump it with PostgreSQL ${found} and restore it into a new folder, or use programs of version ${found} through FIRECREW_PG_BIN.`,
      },
    );
  }
  await assertOwner(options);
  return readPassword(dataDir);
}

/** Where the role's password is kept, beside the data and readable by the caller alone. */
export function passwordFile(dataDir: string): string {
  return `${dataDir}.password`;
}

async function removeLeftovers(dataDir: string): Promise<void> {
  const prefix = `${basename(dataDir)}.init-`;
  for (const name of await readdir(dirname(dataDir))) {
    if (!name.startsWith(prefix)) continue;
    const path = join(dirname(dataDir), name);
    // The initdb of a supervisor that was killed may still be at work; robbed of its files, it would leave shared memory behind.
    await endBackends(path, { fastMs: INITDB_ORPHAN_MS, immediateMs: STOP_IMMEDIATE_MS });
    await rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** The major version in `PG_VERSION`, or undefined when there is no folder or an empty one. */
async function readVersion(dataDir: string): Promise<string | undefined> {
  try {
    return (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  const entries = await readdir(dataDir).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  if (entries.length === 0) return undefined;
  throw new CodedError('database_folder_unknown', `${dataDir} holds files but is no PostgreSQL data directory`, {
    id: dataDir,
    action: 'Choose another folder, or move its files away.',
  });
}

async function binaryMajor({ binaries, user }: ClusterOptions): Promise<string> {
  const said = await runProgram(binaries, 'postgres', ['-V'], user);
  return /\(PostgreSQL\) ([0-9]+)/.exec(said)?.[1] ?? said.trim();
}

async function assertOwner({ dataDir, user }: ClusterOptions): Promise<void> {
  const { uid } = await stat(dataDir);
  const wanted = user?.uid ?? process.getuid?.() ?? uid;
  if (uid === wanted) return;
  throw new CodedError('database_wrong_owner', `${dataDir} belongs to uid ${uid}, and the server would run as uid ${wanted}`, {
    id: dataDir,
    action: `Give it back with chown -R ${wanted} ${dataDir}, or start Firecrew as the user it belongs to.`,
  });
}

async function readPassword(dataDir: string): Promise<string> {
  const path = passwordFile(dataDir);
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (cause) {
    throw new CodedError('database_password_missing', `${path} cannot be read`, {
      id: dataDir,
      action: 'Restore the file from the backup of this folder.',
      cause,
    });
  }
}

async function keptPassword(dataDir: string): Promise<string | undefined> {
  const text = await readFile(passwordFile(dataDir), 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return '';
    throw error;
  });
  const password = text.trim();
  return PASSWORD.test(password) ? password : undefined;
}

async function createCluster(options: ClusterOptions): Promise<string> {
  const { dataDir, user } = options;
  // One that is there may be all that is left of a directory that comes back from a backup.
  const kept = await keptPassword(dataDir);
  const password = kept ?? randomBytes(24).toString('base64url');
  if (kept === undefined) await replaceFile(passwordFile(dataDir), `${password}\n`);
  const aside = `${dataDir}.init-${process.pid}`;
  const handedOver = `${aside}.password`;
  try {
    await mkdir(aside, { mode: 0o700 });
    await writeFile(handedOver, `${password}\n`, { mode: 0o600, flag: 'wx' });
    if (user !== undefined) for (const path of [aside, handedOver]) await chown(path, user.uid, user.gid);
    await initialise(options, aside, handedOver);
    await rename(aside, dataDir);
    await syncFolder(dirname(dataDir));
  } finally {
    await rm(aside, { recursive: true, force: true });
    await rm(handedOver, { force: true });
  }
  return password;
}

async function initialise({ binaries, user, durable }: ClusterOptions, folder: string, passwordPath: string): Promise<void> {
  const args = ['-D', folder, `--username=${DATABASE_ROLE}`, `--pwfile=${passwordPath}`, '--auth=scram-sha-256'];
  args.push('--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions');
  if (!durable) args.push('--no-sync');
  await runProgram(binaries, 'initdb', args, user, folder);
}

async function replaceFile(path: string, text: string): Promise<void> {
  const aside = `${path}.new`;
  await rm(aside, { force: true });
  const file = await open(aside, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(aside, path);
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
