import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf, newId } from '@firecrew/base';
import { type Database, type FileBlobStore, initialiseBlobStore, inTransaction, openFileBlobStore, tables } from '@firecrew/store';
import { eq } from 'drizzle-orm';
import type { ServerConfig } from './config.ts';
import { hashToken } from './http/auth.ts';

/** What one database says about its installation. */
export interface Installation {
  readonly epoch: number;
  readonly attemptKey: Buffer;
  readonly blobs: FileBlobStore;
}

/** Reads or makes what a server needs before it can serve: epoch, key, blob store, local operator and local node. */
export async function prepareInstallation(db: Database, config: ServerConfig, blobRoot: string): Promise<Installation> {
  const homeId = await setting(db, 'home_id', () => config.homeId);
  if (homeId !== config.homeId) {
    throw new CodedError('home_mismatch', `the database belongs to the installation ${homeId}, not to ${config.homeId}`, {
      action: 'Start the server with the home folder of that database.',
    });
  }
  const epoch = Number(await setting(db, 'epoch', () => '1'));
  const attemptKey = Buffer.from(await setting(db, 'attempt_key', () => randomBytes(32).toString('base64url')), 'base64url');
  const blobs = await openBlobs(db, blobRoot);
  await registerLocal(db, config);
  return { epoch, attemptKey, blobs };
}

/** The blob store that this database has always used; a new one is made only where none was ever recorded and none lies there. */
async function openBlobs(db: Database, root: string): Promise<FileBlobStore> {
  const [known] = await db.select().from(tables.settings).where(eq(tables.settings.key, 'blob_store_id'));
  if (known !== undefined) return await openFileBlobStore(root, { expectStoreId: known.value });
  const made = await initialiseBlobStore(root, randomBytes(16).toString('hex')).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'blob_store_exists') return false;
      throw error;
    },
  );
  const store = await openFileBlobStore(root);
  // One that was made before its id was recorded holds nothing yet. Any other has lost its database.
  if (!made && (await readdir(join(root, 'workspaces'))).length > 0) {
    throw new CodedError('database_empty', `the database is empty, and ${root} holds what an earlier one knew`, {
      id: root,
      action: `Restore the database from its backup; to begin anew, move ${root} aside.`,
    });
  }
  await setting(db, 'blob_store_id', () => store.storeId);
  return store;
}

async function setting(db: Database, key: string, make: () => string): Promise<string> {
  await db.insert(tables.settings).values({ key, value: make() }).onConflictDoNothing();
  const [row] = await db.select().from(tables.settings).where(eq(tables.settings.key, key));
  if (row === undefined) throw new CodedError('settings_unreadable', `the setting ${key} cannot be read`);
  return row.value;
}

async function registerLocal(db: Database, config: ServerConfig): Promise<void> {
  await inTransaction(db, async (tx) => {
    await tx
      .insert(tables.workspaces)
      .values({ id: newId('workspace'), name: 'default' })
      .onConflictDoNothing();
    const [workspace] = await tx.select().from(tables.workspaces).where(eq(tables.workspaces.name, 'default'));
    if (workspace === undefined) throw new CodedError('settings_unreadable', 'the default workspace cannot be read');
    await tx
      .insert(tables.apiTokens)
      .values({
        id: newId('token'),
        workspaceId: workspace.id,
        name: 'local operator',
        role: 'operator',
        hash: hashToken(config.operatorToken),
      })
      .onConflictDoNothing();
    if (config.localNode === null) return;
    const { id, name, publicKey } = config.localNode;
    await tx.insert(tables.nodes).values({ id, name, publicKey }).onConflictDoUpdate({ target: tables.nodes.id, set: { publicKey } });
  });
}
