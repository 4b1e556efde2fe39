import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { countInodes, type FlatEntry, flattenTree } from '../layers/flatten-tree.ts';
import { type ImageLayer, mergeLayers } from '../layers/merge-layers.ts';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from '../limits.ts';
import type { Architecture } from '../oci/choose-image.ts';
import { ByteBudget } from '../oci/spool-archive.ts';
import type { OnProgress } from '../progress.ts';
import type { ArtifactFacts } from '../store/artifact-manifest.ts';
import type { FileSource } from '../tar/byte-source.ts';
import type { ByteSource } from '../tar/scan-tar.ts';
import type { BuildContext } from './build-context.ts';
import { FIXED_TIME_SECONDS, type ImageSource, layOutSource } from './lay-out-source.ts';
import { addPackages, type NpmPackage } from './npm-packages.ts';
import { parseSquashfsHeader, SUPERBLOCK_BYTES, writeSquashfs } from './squashfs.ts';
import { writeArchive } from './write-archive.ts';

/** The one file of an image. */
export const ROOT_FILE = 'root.squashfs';
/** Level of zstd of images: higher ones take many times as long and save a few percent. */
export const IMAGE_ZSTD_LEVEL = 6;
/** Block size of images: reading one byte of a file unpacks one block. */
export const IMAGE_BLOCK_BYTES = 128 * 1024;
/** Entries between two words about progress. */
const PROGRESS_EVERY = 500;

/** How an image is built. */
export interface BuildImageOptions {
  readonly source: ImageSource;
  readonly architecture: Architecture;
  /** An empty folder that gets {@link ROOT_FILE}. */
  readonly target: string;
  /** An empty folder for layers on the way; the caller removes it. */
  readonly work: string;
  /** Packages of npm that are laid over the source. */
  readonly npm?: readonly NpmPackage[];
  /** Links of the image that are made at the end: path to target. */
  readonly links?: Readonly<Record<string, string>>;
  /** Added to the environment that the source wants. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly limits?: Partial<ImageLimits>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/**
 * Builds a read-only root file system. Nothing of the source is unpacked or run on this machine: headers are merged in memory and one archive
 * is streamed into squashfs, so that owners, modes and devices are right without root. The same source gives the same bytes.
 * Throws `source_unreadable`, `image_malformed`, `image_not_found`, `image_ambiguous`, `image_unsupported`, `image_too_large`,
 * `digest_mismatch`, `layer_malformed`, `layer_cut`, `entry_refused`, `suite_unknown`, `package_name_wrong`, `npm_pack_failed`,
 * `tool_missing`, `tool_failed`, `squashfs_malformed`.
 */
export async function buildImage(options: BuildImageOptions): Promise<ArtifactFacts & { readonly kind: 'image' }> {
  const limits = { ...DEFAULT_IMAGE_LIMITS, ...options.limits };
  const say: OnProgress = options.onProgress ?? (() => undefined);
  const { architecture, work, signal } = options;
  const opened: FileSource[] = [];
  const context: BuildContext = { architecture, work, signal, limits, budget: new ByteBudget(limits.maxBytes), say, opened };
  try {
    const base = await layOutSource(context, options.source);
    const npm = await addPackages(context, options.npm ?? []);
    const open = [...base.layers, ...npm.layers];
    const layers = [...open.map(({ layer }) => layer), linkLayer(options.links ?? {})];
    const entries = [...flattenTree(mergeLayers(layers, limits), base.times)];
    await pack(
      options,
      say,
      entries,
      open.map(({ archive }) => archive),
    );
    return {
      kind: 'image',
      architecture: options.architecture,
      format: 'squashfs',
      source: base.source,
      npm: [...npm.names],
      environment: { ...base.run.environment, ...options.environment },
      user: base.run.user,
      workingDirectory: base.run.workingDirectory,
      entryCount: entries.length,
      times: base.times.kind === 'kept' ? { kind: 'kept' } : { kind: 'fixed', seconds: base.times.seconds },
    };
  } finally {
    for (const archive of opened) await archive.close();
  }
}

async function pack(
  options: BuildImageOptions,
  say: OnProgress,
  entries: readonly FlatEntry[],
  layers: readonly ByteSource[],
): Promise<void> {
  const file = join(options.target, ROOT_FILE);
  const root = entries[0]?.entry;
  if (root === undefined) throw new Error('a tree has a root');
  const archive = writeArchive(entries, layers, (done) => {
    if (done % PROGRESS_EVERY === 0) say({ step: 'packing the file system', fraction: done / entries.length });
  });
  await writeSquashfs(archive, file, root, { level: IMAGE_ZSTD_LEVEL, blockBytes: IMAGE_BLOCK_BYTES, signal: options.signal });
  await checkInodes(file, countInodes(entries));
}

/** A tool that left something out would make an image that fails much later. Throws `squashfs_malformed`. */
export async function checkInodes(file: string, wanted: number): Promise<void> {
  const handle = await open(file);
  try {
    const block = Buffer.alloc(SUPERBLOCK_BYTES);
    const { bytesRead } = await handle.read(block, 0, SUPERBLOCK_BYTES, 0);
    const { inodes } = parseSquashfsHeader(block.subarray(0, bytesRead));
    if (inodes === wanted) return;
    throw new CodedError('squashfs_malformed', `the file system holds ${inodes} files and folders, and ${wanted} were packed`, {
      id: file,
      action: 'Update squashfs-tools-ng, and build the image again.',
    });
  } finally {
    await handle.close();
  }
}

/** Links that a recipe asks for, as a layer on top. */
function linkLayer(links: Readonly<Record<string, string>>): ImageLayer {
  const entries = Object.entries(links).map(([path, linkName]) => ({
    type: 'symbolic-link' as const,
    path: Buffer.from(path).toString('latin1'),
    linkName: Buffer.from(linkName).toString('latin1'),
    mode: 0o777,
    uid: 0,
    gid: 0,
    size: 0,
    mtime: FIXED_TIME_SECONDS,
    xattrs: new Map(),
    deviceMajor: 0,
    deviceMinor: 0,
    offset: 0,
  }));
  return { entries, whiteouts: false };
}
