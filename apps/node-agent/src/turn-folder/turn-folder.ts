import { chmodSync } from 'node:fs';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import {
  type AttemptResult,
  attemptResultSchema,
  GENERATION,
  MIN_GENERATION,
  type ShimIdentity,
  shimIdentitySchema,
  TURN_FOLDER,
  type TurnSpec,
  turnIdSchema,
  turnSpecSchema,
} from '@firecrew/protocol';
import type * as z from 'zod';

/** Paths inside one turn folder. */
export interface TurnPaths {
  readonly root: string;
  readonly spec: string;
  readonly inputs: string;
  readonly events: string;
  readonly log: string;
  readonly outcome: string;
  readonly staged: string;
  readonly identity: string;
  readonly control: string;
  readonly shimLog: string;
}

/** The paths of the turn folder at `root`. */
export function turnPaths(root: string): TurnPaths {
  const at = (name: string) => join(root, name);
  return {
    root,
    spec: at(TURN_FOLDER.spec),
    inputs: at(TURN_FOLDER.inputs),
    events: at(TURN_FOLDER.events),
    log: at(TURN_FOLDER.log),
    outcome: at(TURN_FOLDER.outcome),
    staged: at(TURN_FOLDER.staged),
    identity: at(TURN_FOLDER.identity),
    control: at(TURN_FOLDER.control),
    shimLog: at(TURN_FOLDER.shimLog),
  };
}

/** Name of the folder of an attempt, `turnId.attempt`. */
export function turnFolderName(key: { readonly turnId: string; readonly attempt: number }): string {
  return `${key.turnId}.${key.attempt}`;
}

/** The attempt that a folder of that name is of; undefined for a name that is none. */
export function readTurnFolderName(name: string): { readonly turnId: string; readonly attempt: number } | undefined {
  const match = /^(.+)\.([1-9]\d{0,8})$/.exec(name);
  const turnId = turnIdSchema.safeParse(match?.[1]);
  return turnId.success ? { turnId: turnId.data, attempt: Number(match?.[2]) } : undefined;
}

/** Reads a folder's spec. Throws `folder_generation_unknown` for a newer folder, `spec_refused` for one that is not understood. */
export async function readSpec(paths: TurnPaths): Promise<TurnSpec> {
  const value = await readJson(paths.spec);
  const generation = typeof value === 'object' && value !== null && 'generation' in value ? value.generation : undefined;
  if (typeof generation !== 'number' || generation > GENERATION || generation < MIN_GENERATION.turnFolder) {
    throw new CodedError(
      'folder_generation_unknown',
      `${paths.root} is of generation ${String(generation)}; this build reads ${MIN_GENERATION.turnFolder} to ${GENERATION}`,
      { id: paths.root },
    );
  }
  const parsed = turnSpecSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new CodedError(
    'spec_refused',
    `the turn specification is not understood: ${parsed.error.issues.map((issue) => `${issue.path.map(String).join('.')}: ${issue.message}`).join('; ')}`,
    { id: paths.root },
  );
}

/** The outcome of a folder; undefined while there is none. An unreadable one throws `outcome_unreadable`, which is not "none". */
export async function readOutcome(paths: TurnPaths): Promise<AttemptResult | undefined> {
  return await readChecked(paths.outcome, attemptResultSchema, 'outcome_unreadable');
}

/** Who the shim of a folder is; undefined before it has said so. */
export async function readShimIdentity(paths: TurnPaths): Promise<ShimIdentity | undefined> {
  return await readChecked(paths.identity, shimIdentitySchema, 'identity_unreadable');
}

/** Writes a file as a whole: temporary file, fsync, rename, so that a reader sees all of it or nothing. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const temporary = `${file}.part`;
  const handle = await open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
}

async function readChecked<T>(
  file: string,
  schema: z.ZodType<T>,
  code: 'outcome_unreadable' | 'identity_unreadable',
): Promise<T | undefined> {
  let value: unknown;
  try {
    value = await readJson(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw code === 'outcome_unreadable'
      ? new CodedError('outcome_unreadable', `${file} cannot be read: ${messageOf(error)}`, { id: file, cause: error })
      : new CodedError('identity_unreadable', `${file} cannot be read: ${messageOf(error)}`, { id: file, cause: error });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw code === 'outcome_unreadable'
    ? new CodedError('outcome_unreadable', `${file} does not fit its schema`, { id: file })
    : new CodedError('identity_unreadable', `${file} does not fit its schema`, { id: file });
}

async function readJson(file: string): Promise<unknown> {
  return JSON.parse(await readFile(file, 'utf8')) as unknown;
}

/** Lets the users of VMs walk through a turn folder to their own, which lets no other pass; all else in it is private by itself. For an agent that is root. */
export function admitUsers(folder: string): void {
  chmodSync(folder, 0o711);
}
