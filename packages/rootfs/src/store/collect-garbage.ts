import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CodedError, codeOf } from '@firecrew/base';
import * as z from 'zod';
import { type ArtifactDigest, artifactIdSchema } from './artifact-manifest.ts';
import type { ImageStore } from './image-store.ts';
import { planCollection, type UnusedSince } from './plan-collection.ts';
import { storeFailed } from './store-errors.ts';

/** How long an artifact must have been unused before it goes: a day, in `ms`. */
export const COLLECTION_GRACE_MS = 24 * 60 * 60 * 1000;
/** How long a folder of a maker must have been untouched before it counts as left by a crash: a day, in `ms`. */
export const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

const MARKS_FILE = 'unused.json';
const marksSchema = z.record(artifactIdSchema, z.number());

/** What one pass did. */
export interface Collection {
  readonly removed: readonly ArtifactDigest[];
  /** Unused, and removed by a later pass if they still are. */
  readonly waiting: readonly ArtifactDigest[];
  /** Folders left by makers that crashed. */
  readonly abandoned: readonly string[];
  /** What should have gone, or could not be judged, and why. */
  readonly failed: readonly { readonly id: string; readonly error: CodedError }[];
}

/**
 * One pass over a store: removes what nobody in `inUse` needs and an earlier pass saw unused long enough ago. What is damaged is told and left
 * alone, as is everything whose name the store did not give. Throws `image_store_failed`.
 */
export async function collectGarbage(
  store: ImageStore,
  inUse: ReadonlySet<ArtifactDigest>,
  { nowMs, graceMs = COLLECTION_GRACE_MS }: { readonly nowMs: number; readonly graceMs?: number },
): Promise<Collection> {
  const { artifacts, damaged } = await store.list();
  const file = join(store.root, MARKS_FILE);
  const plan = planCollection(
    artifacts.map(({ id }) => id),
    inUse,
    await readMarks(file),
    { nowMs, graceMs },
  );
  const removed: ArtifactDigest[] = [];
  const failed: { id: string; error: CodedError }[] = [...damaged];
  for (const id of plan.remove) {
    try {
      await store.remove(id);
      removed.push(id);
    } catch (error) {
      if (codeOf(error) !== 'image_unknown') failed.push({ id, error: storeFailed(`${id} cannot be removed`, id, error) });
    }
  }
  await writeMarks(file, plan.unusedSince);
  const abandoned = await store.listAbandoned(nowMs, ABANDONED_AFTER_MS);
  for (const name of abandoned) await store.removeAbandoned(name);
  return { removed, waiting: [...plan.unusedSince.keys()], abandoned, failed };
}

/** Marks that cannot be read are forgotten: then everything waits once more. */
async function readMarks(file: string): Promise<UnusedSince> {
  try {
    return new Map(Object.entries(marksSchema.parse(JSON.parse(await readFile(file, 'utf8')))));
  } catch {
    return new Map();
  }
}

async function writeMarks(file: string, marks: UnusedSince): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(temporary, `${JSON.stringify(Object.fromEntries(marks))}\n`, { flag: 'wx' });
    await rename(temporary, file);
  } catch (cause) {
    throw storeFailed(`${file} cannot be written`, file, cause);
  }
}
