import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { streamSource } from '../tar/byte-source.ts';
import type { ByteSource } from '../tar/scan-tar.ts';
import { algorithmOf, blobName, checkDigest, type ImageFiles, readBlobDocument, readDocument, verified } from './blob-store.ts';
import {
  type Architecture,
  checkPlatform,
  chooseDescriptor,
  chooseSaved,
  descriptorKind,
  type LayerCompression,
  layerCompression,
} from './choose-image.ts';
import {
  configSchema,
  type Descriptor,
  type ImageConfig,
  indexSchema,
  layoutSchema,
  malformedImage,
  manifestSchema,
  parseDocument,
  savedSchema,
} from './documents.ts';
import { type ByteBudget, spoolArchive } from './spool-archive.ts';

/** Indexes that may lead to one image. */
const MAX_INDEX_DEPTH = 4;

/** One layer as it lies in the source. */
export interface FoundLayer {
  readonly stream: () => AsyncIterable<Uint8Array>;
  readonly compression: LayerCompression;
  /** Digest of the plain archive. */
  readonly diffId: string;
}

/** One image of a source: its configuration and its layers, the lowest first. */
export interface FoundImage {
  readonly config: ImageConfig;
  /** Digest of the manifest, or of the configuration where the source has no manifest. */
  readonly digest: string;
  readonly layers: readonly FoundLayer[];
}

/** Finds an image in an OCI layout, or in the archive of `docker save`. Throws `image_malformed`, `image_not_found` and their like. */
export async function findImage(files: ImageFiles, architecture: Architecture, reference: string | undefined): Promise<FoundImage> {
  const layout = await readDocument(files, 'oci-layout');
  if (layout !== undefined) {
    parseDocument(layout, layoutSchema, 'oci-layout');
    return await findInLayout(files, architecture, reference);
  }
  const saved = await readDocument(files, 'manifest.json');
  if (saved === undefined) throw malformedImage('it has neither oci-layout nor manifest.json');
  return await findSaved(files, saved, architecture, reference);
}

async function findInLayout(files: ImageFiles, architecture: Architecture, reference: string | undefined): Promise<FoundImage> {
  const index = await readDocument(files, 'index.json');
  if (index === undefined) throw malformedImage('index.json is missing');
  let chosen = chooseDescriptor(parseDocument(index, indexSchema, 'index.json').manifests, architecture, reference);
  for (let depth = 0; descriptorKind(chosen) === 'index'; depth += 1) {
    if (depth >= MAX_INDEX_DEPTH) throw malformedImage(`more than ${MAX_INDEX_DEPTH} indexes lead to an image`);
    const inner = parseDocument(await readBlobDocument(files, chosen), indexSchema, chosen.digest);
    // The name belongs to the outer entry.
    chosen = chooseDescriptor(inner.manifests, architecture, undefined);
  }
  const manifest = parseDocument(await readBlobDocument(files, chosen), manifestSchema, chosen.digest);
  const config = parseDocument(await readBlobDocument(files, manifest.config), configSchema, manifest.config.digest);
  checkPlatform(config, architecture);
  const diffIds = config.rootfs.diff_ids;
  if (diffIds.length !== manifest.layers.length)
    throw malformedImage(`it has ${manifest.layers.length} layers and ${diffIds.length} digests of their contents`);
  const layers = manifest.layers.map((descriptor, at) => layoutLayer(files, descriptor, diffIds[at] ?? ''));
  return { config, digest: chosen.digest, layers };
}

function layoutLayer(files: ImageFiles, { digest, size, mediaType }: Descriptor, diffId: string): FoundLayer {
  async function* stream(): AsyncGenerator<Uint8Array> {
    const source = await files.open(blobName(digest));
    if (source === undefined) throw malformedImage(`the layer ${digest} is missing`);
    if (source.size !== size) throw malformedImage(`the layer ${digest} has ${source.size} bytes, not ${size}`);
    yield* verified(source, digest);
  }
  return { stream, compression: layerCompression(mediaType), diffId };
}

async function findSaved(files: ImageFiles, saved: Buffer, architecture: Architecture, reference: string | undefined): Promise<FoundImage> {
  const chosen = chooseSaved(parseDocument(saved, savedSchema, 'manifest.json'), architecture, reference);
  const bytes = await readDocument(files, chosen.Config);
  if (bytes === undefined) throw malformedImage(`the configuration ${chosen.Config} is missing`);
  const config = parseDocument(bytes, configSchema, chosen.Config);
  checkPlatform(config, architecture);
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const stated = /(?:^|\/)([0-9a-f]{64})(?:\.json)?$/.exec(chosen.Config)?.[1];
  if (stated !== undefined) checkDigest(`sha256:${stated}`, digest.slice('sha256:'.length));
  const diffIds = config.rootfs.diff_ids;
  if (diffIds.length !== chosen.Layers.length)
    throw malformedImage(`it has ${chosen.Layers.length} layers and ${diffIds.length} digests of their contents`);
  const layers: FoundLayer[] = [];
  for (const [at, name] of chosen.Layers.entries()) {
    const source = await files.open(name);
    if (source === undefined) throw malformedImage(`the layer ${name} is missing`);
    layers.push(await savedLayer(source, diffIds[at] ?? ''));
  }
  return { config, digest, layers };
}

/** A saved archive has no media types: some writers compress its layers. The digest of the content is checked either way. */
async function savedLayer(source: ByteSource, diffId: string): Promise<FoundLayer> {
  const magic = source.size < 4 ? '' : (await source.read(0, 4)).toString('hex');
  const compression = magic.startsWith('1f8b') ? 'gzip' : magic === '28b52ffd' ? 'zstd' : 'none';
  return { stream: () => streamSource(source), compression, diffId };
}

/** Writes the layers as plain archives into a folder, each checked by its digests; gives their files in order. Throws `digest_mismatch`. */
export async function spoolLayers(
  { layers }: FoundImage,
  folder: string,
  {
    budget,
    signal,
    onLayer,
  }: { readonly budget: ByteBudget; readonly signal?: AbortSignal | undefined; readonly onLayer?: (done: number) => void },
): Promise<readonly string[]> {
  const spooled: string[] = [];
  for (const [at, { stream, compression, diffId }] of layers.entries()) {
    const file = join(folder, `layer-${at}.tar`);
    const { hex } = await spoolArchive(stream(), file, { compression, algorithm: algorithmOf(diffId), budget, signal });
    checkDigest(diffId, hex);
    spooled.push(file);
    onLayer?.(at + 1);
  }
  return spooled;
}
