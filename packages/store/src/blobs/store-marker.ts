import { mkdir, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import { syncFolder } from './write-durably.ts';

/** The file that makes a folder a blob store. */
export const MARKER_NAME = 'firecrew-blob-store.json';
/** The only layout there is so far. */
const LAYOUT = 1;
/** Form of a store id. */
const STORE_ID = /^[A-Za-z0-9_-]{8,64}$/;

/**
 * Makes an empty folder a blob store with the given id (8 to 64 characters of A-Z a-z 0-9 _ -). Only an operator's explicit step may call it.
 * Throws `blob_store_exists`, or `blob_store_not_empty` for a folder that holds anything else.
 */
export async function initialiseBlobStore(root: string, storeId: string): Promise<void> {
  if (!STORE_ID.test(storeId)) throw new CodedError('blob_store_id_invalid', `${JSON.stringify(storeId.slice(0, 80))} is no store id`);
  await mkdir(root, { recursive: true, mode: 0o700 });
  const found = (await readdir(root)).filter((name) => name !== 'lost+found');
  if (found.includes(MARKER_NAME)) throw new CodedError('blob_store_exists', `${root} is a blob store already`, { id: root });
  if (found.length > 0) {
    throw new CodedError('blob_store_not_empty', `${root} holds other files`, { id: root, action: 'Choose an empty folder.' });
  }
  for (const name of ['workspaces', 'incoming']) await mkdir(join(root, name), { mode: 0o700 });
  const file = await open(join(root, MARKER_NAME), 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ layout: LAYOUT, storeId })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await syncFolder(root);
}

/** Reads the id of the store at `root`. Throws `blob_store_unavailable` when there is no marker or it cannot be read. */
export async function readMarker(root: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(join(root, MARKER_NAME), 'utf8');
  } catch (cause) {
    const why = codeOf(cause) === 'ENOENT' ? 'holds no blob store: not mounted, or never initialised' : 'cannot be read';
    throw new CodedError('blob_store_unavailable', `${root} ${why}`, {
      id: root,
      action: 'Mount the store. For a new one, initialise it once.',
      cause,
    });
  }
  const storeId = parseMarker(text);
  if (storeId === undefined) {
    throw new CodedError('blob_store_unavailable', `${join(root, MARKER_NAME)} is not of a layout this version knows`, { id: root });
  }
  return storeId;
}

function parseMarker(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('layout' in value) || !('storeId' in value)) return undefined;
    return value.layout === LAYOUT && typeof value.storeId === 'string' && STORE_ID.test(value.storeId) ? value.storeId : undefined;
  } catch {
    return undefined;
  }
}
