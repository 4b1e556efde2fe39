import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CodedError, codeOf, isAlive, messageOf } from '@firecrew/base';
import { driverSchema, shimIdentitySchema, TURN_FOLDER } from '@firecrew/protocol';
import type { ArtifactDigest } from '@firecrew/rootfs';
import * as z from 'zod';

/** File in which a node agent tells a shim what its VMs are made of. */
const LAUNCH_FILE = 'launch.json';

const artifactId = z.templateLiteral(['sha256:', z.string().regex(/^[0-9a-f]{64}$/)]);
const machineSchema = z
  .object({ store: z.string(), artifacts: z.object({ kernel: artifactId, payload: artifactId, image: artifactId }) })
  .nullish();
/** The parts that say so; the rest is between node agent and shim. */
const launchSchema = z.object({ qemu: machineSchema, firecracker: machineSchema });
const specSchema = z.object({ driver: driverSchema });

/** Attempts (`turnId.attempt`) of this host that run, by the artifacts of a store that their VMs are made of. */
export type AttemptUses = ReadonlyMap<ArtifactDigest, readonly string[]>;

/**
 * Reads from the turn folders of a node what the attempts that run are made of: each boots further VMs of the same until it ends.
 * Throws `image_use_unknown` for a folder that cannot be read, which is not "unused".
 */
export async function findAttemptUses(turns: string, store: string): Promise<AttemptUses> {
  const uses = new Map<ArtifactDigest, string[]>();
  for (const attempt of await guard(turns, () => namesIn(turns))) {
    const folder = join(turns, attempt);
    for (const id of await guard(folder, () => artifactsOf(folder, store))) uses.set(id, [...(uses.get(id) ?? []), attempt]);
  }
  return uses;
}

async function artifactsOf(folder: string, store: string): Promise<readonly ArtifactDigest[]> {
  if (!(await isRunning(folder))) return [];
  const launch = await readPart(join(folder, LAUNCH_FILE), launchSchema);
  // Written before the shim starts: without it there is none yet, and what it will get is looked up then.
  if (launch === undefined) return [];
  const spec = await readPart(join(folder, TURN_FOLDER.spec), specSchema);
  if (spec === undefined || spec.driver === 'process') return [];
  const machine = launch[spec.driver];
  return machine == null || resolve(machine.store) !== resolve(store) ? [] : Object.values(machine.artifacts);
}

/** It has no outcome, and its shim lives or is just being started. */
async function isRunning(folder: string): Promise<boolean> {
  if ((await readIfThere(join(folder, TURN_FOLDER.outcome))) !== undefined) return false;
  const identity = await readPart(join(folder, TURN_FOLDER.identity), shimIdentitySchema);
  return identity === undefined || isAlive(identity);
}

async function readPart<Value>(file: string, schema: z.ZodType<Value>): Promise<Value | undefined> {
  const text = await readIfThere(file);
  return text === undefined ? undefined : schema.parse(JSON.parse(text));
}

/** The text of a file; undefined where the file, or its folder, is gone. */
async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function guard<Value>(folder: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (cause) {
    throw new CodedError('image_use_unknown', `what attempts use cannot be read from ${folder}: ${messageOf(cause).split('\n')[0]}`, {
      id: folder,
      action: 'Run it as the account of the node agent. Nothing was removed.',
      cause,
    });
  }
}

/** Throws `image_in_use` where an attempt that runs is made of an artifact. */
export function demandUnused(id: ArtifactDigest, uses: AttemptUses): void {
  const [first, ...others] = uses.get(id) ?? [];
  if (first === undefined) return;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  throw new CodedError('image_in_use', `${id} is what the VMs of attempt ${first}${more} are made of`, {
    id: first,
    action: 'Wait until it has ended, or cancel its mission; firecrew status says what runs.',
  });
}
