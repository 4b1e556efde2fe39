import { createWriteStream, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import {
  COLLECTION_GRACE_MS,
  checkArtifactName,
  collectGarbage,
  DEFAULT_LAYER_SETTINGS,
  exportArtifact,
  importArtifact,
  LayerStore,
  layerBoundsOf,
} from '@firecrew/rootfs';
import { describeError, errorBody } from '../describe-error.ts';
import { UsageError } from '../exit-codes.ts';
import { demandUnused, findAttemptUses } from '../images/attempt-uses.ts';
import { findArtifact, findArtifactId, type HomeImages, imagesOf } from '../images/image-store.ts';
import { mebibytes, namesOf, renderArtifacts, viewOf } from '../images/render-images.ts';
import { whileWatched } from '../images/while-watched.ts';
import { cleanLine } from '../render/clean-text.ts';
import { parseDuration } from '../run/parse-duration.ts';
import { type CommandContext, homeOf, settingsOf } from './context.ts';

/** `firecrew image list`: what the store holds; exit code 1 when something in it is damaged. */
export async function imageListCommand(context: CommandContext, json: boolean): Promise<number> {
  const images = imagesOf(context);
  const [{ artifacts, damaged }, names] = [await images.store.list(), await images.names.list()];
  const views = artifacts.map((artifact) => viewOf(artifact, names));
  if (json)
    context.out.line(JSON.stringify({ artifacts: views, damaged: damaged.map(({ id, error }) => ({ id, error: errorBody(error) })) }));
  else for (const line of renderArtifacts(views, damaged)) context.out.line(line);
  return damaged.length === 0 ? 0 : 1;
}

/** `firecrew image verify [NAME...]`: reads every byte against its digest; exit code 1 when one differs. */
export async function imageVerifyCommand(context: CommandContext, wanted: readonly string[], json: boolean): Promise<number> {
  const images = imagesOf(context);
  const { out } = context;
  return await whileWatched(out, async (signal) => {
    const results: { id: string; error: ReturnType<typeof errorBody> | null }[] = [];
    for (const id of await idsOf(images, wanted)) {
      const error = await verify(images, id, signal);
      results.push({ id, error: error === undefined ? null : errorBody(error) });
      if (json) continue;
      if (error === undefined) out.line(`ok       ${id}`);
      else for (const line of [`damaged  ${id}`, ...describeError(error)]) out.line(line);
    }
    if (json) out.line(JSON.stringify(results));
    else if (results.length === 0) out.line('there is nothing to verify');
    return results.every(({ error }) => error === null) ? 0 : 1;
  });
}

/** `firecrew image export NAME`: one artifact as one file; one that is there is never written over. */
export async function imageExportCommand(
  context: CommandContext,
  wanted: string,
  options: { readonly output: string; readonly json: boolean },
): Promise<number> {
  const images = imagesOf(context);
  const file = resolve(context.cwd, options.output);
  return await whileWatched(context.out, async (signal) => {
    const open = await images.store.openVerified((await findArtifact(images, wanted)).id, undefined, signal);
    let isOurs = false;
    try {
      const target = createWriteStream(file, { flags: 'wx' });
      target.once('open', () => {
        isOurs = true;
      });
      await pipeline(Readable.from(exportArtifact(open), { objectMode: false }), target, { signal });
    } catch (cause) {
      if (isOurs) rmSync(file, { force: true });
      if (signal.aborted || cause instanceof CodedError) throw cause;
      throw new CodedError('export_failed', `${file} cannot be written: ${messageOf(cause)}`, {
        id: file,
        action: codeOf(cause) === 'EEXIST' ? 'Name a file that is not there yet.' : 'Check the room and the rights there.',
        cause,
      });
    } finally {
      await open.close();
    }
    if (options.json) context.out.line(JSON.stringify({ id: open.id, file }));
    else context.out.line(`${file}: ${open.id}; import it with: firecrew image import FILE --expect ${open.id}`);
    return 0;
  });
}

/** `firecrew image import FILE`: takes exactly one artifact out of a file. */
export async function imageImportCommand(
  context: CommandContext,
  file: string,
  options: { readonly name: string | undefined; readonly expect: string | undefined; readonly json: boolean },
): Promise<number> {
  const { name, expect } = options;
  if (expect !== undefined && !/^sha256:[0-9a-f]{64}$/.test(expect))
    throw new UsageError('usage_wrong', `${JSON.stringify(expect)} is no whole id`, {
      action: 'Give the whole id, as firecrew image export printed it.',
    });
  if (name !== undefined) checkArtifactName(name);
  const images = imagesOf(context);
  const made = await importArtifact(images.store, resolve(context.cwd, file), expect);
  if (name !== undefined) await images.names.set(name, made.id);
  if (options.json) context.out.line(JSON.stringify(viewOf(made, await images.names.list())));
  else context.out.line(`${name ?? 'imported'}: ${made.id}, ${mebibytes(made.sizeBytes)} MiB`);
  return 0;
}

/** `firecrew image gc`: removes what has no name and had none when an earlier pass looked, and set-ups that the node keeps beyond its bounds. */
export async function imageGcCommand(
  context: CommandContext,
  options: { readonly grace: string | undefined; readonly json: boolean },
): Promise<number> {
  const graceMs = options.grace === undefined ? COLLECTION_GRACE_MS : parseDuration(options.grace);
  if (graceMs === undefined)
    throw new UsageError('usage_wrong', `${JSON.stringify(options.grace)} is no duration`, { action: 'Write it as 30m, 24h or 7d.' });
  const images = imagesOf(context);
  const { turns } = homeOf(context).paths;
  const inUse = new Set([...(await images.names.list()).values(), ...(await findAttemptUses(turns, images.store.root)).keys()]);
  const { removed, waiting, abandoned, failed } = await collectGarbage(images.store, inUse, { nowMs: Date.now(), graceMs });
  const layers = await layersOf(context).collect(Date.now());
  const { out } = context;
  if (options.json)
    out.line(
      JSON.stringify({ removed, waiting, abandoned, layers, failed: failed.map(({ id, error }) => ({ id, error: errorBody(error) })) }),
    );
  else {
    for (const id of removed) out.line(`removed  ${id}`);
    for (const id of waiting) out.line(`waits    ${id}`);
    for (const name of abandoned) out.line(`removed  ${cleanLine(name, 80)}, left by a build that was cut off`);
    for (const { id, error } of failed) out.line(`failed   ${cleanLine(id, 80)}: ${cleanLine(error.message, 200)}`);
    for (const key of layers) out.line(`removed  the layer ${key} of a set-up`);
    if (removed.length + waiting.length + abandoned.length + layers.length + failed.length === 0)
      out.line('everything has a name or is in use');
  }
  return failed.length === 0 ? 0 : 1;
}

/** The set-ups that this home's node keeps; a node that keeps none any more may have some of before. */
function layersOf(context: CommandContext): LayerStore {
  const home = homeOf(context);
  const given = Object.entries(settingsOf(context, home).setupLayers ?? {}).filter(([, value]) => value !== undefined);
  return new LayerStore(home.paths.layers, layerBoundsOf({ ...DEFAULT_LAYER_SETTINGS, ...Object.fromEntries(given) }));
}

/** `firecrew image remove NAME`: the name, and the artifact where no other name leads to it. Throws `image_in_use` where an attempt of this host is made of it. */
export async function imageRemoveCommand(context: CommandContext, wanted: string, json: boolean): Promise<number> {
  const images = imagesOf(context);
  const id = await findArtifactId(images, wanted);
  const names = namesOf(id, await images.names.list());
  const isName = names.includes(wanted);
  const others = isName ? names.filter((name) => name !== wanted) : [];
  if (others.length === 0) demandUnused(id, await findAttemptUses(homeOf(context).paths.turns, images.store.root));
  for (const name of isName ? [wanted] : names) await images.names.remove(name);
  if (others.length === 0) await images.store.remove(id);
  const removed = others.length === 0;
  if (json) context.out.line(JSON.stringify({ id, removed, names: others }));
  else context.out.line(removed ? `removed ${id}` : `${wanted} is gone; ${id} stays as ${others.join(', ')}`);
  return 0;
}

async function idsOf(images: HomeImages, wanted: readonly string[]): Promise<readonly string[]> {
  if (wanted.length > 0) return await Promise.all(wanted.map(async (one) => await findArtifactId(images, one)));
  const { artifacts, damaged } = await images.store.list();
  return [...artifacts, ...damaged].map(({ id }) => id);
}

async function verify({ store }: HomeImages, id: string, signal: AbortSignal): Promise<unknown> {
  try {
    await (await store.openVerified(id, undefined, signal)).close();
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return error;
  }
}
