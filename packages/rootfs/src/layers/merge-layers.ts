import { type ImageLimits, MAX_PATH_BYTES } from '../limits.ts';
import { imageTooLarge, refusedEntry } from '../tar/refusals.ts';
import type { ScannedEntry } from '../tar/scan-tar.ts';
import type { ByteText, EntryMetadata } from '../tar/tar-entry.ts';
import { splitImagePath } from './image-path.ts';
import { findFolder, type ImageFile, type ImageFolder, makeFolder, newFolder, StepBudget } from './image-tree.ts';
import { parseWhiteout, type Whiteout } from './whiteouts.ts';

const MAX_MAJOR = 0xfff;
const MAX_MINOR = 0xfffff;

/** The entries of one layer, in the order of its archive. */
export interface ImageLayer {
  readonly entries: readonly ScannedEntry[];
  /** Whether `.wh.` names hide what lies below: in layers of containers they do, in a copied folder they are names like others. */
  readonly whiteouts: boolean;
}

/** What merging is bounded by. */
export type MergeLimits = Pick<ImageLimits, 'maxEntries' | 'maxLayers' | 'maxResolveSteps'>;

/**
 * Lays layers over each other, the first one lowest. Whiteouts of a layer work on lower layers alone, wherever they stand in it; then its
 * entries are taken in order, the last of one name winning, as an unpacker would. Nothing is read but headers, and nothing touches a disk.
 * Throws `entry_refused`, `image_too_large`.
 */
export function mergeLayers(layers: readonly ImageLayer[], limits: MergeLimits): ImageFolder {
  if (layers.length > limits.maxLayers) throw imageTooLarge(`the image has ${layers.length} layers; ${limits.maxLayers} are allowed`);
  const count = layers.reduce((sum, { entries }) => sum + entries.length, 0);
  if (count > limits.maxEntries) throw imageTooLarge(`the image has ${count} entries; ${limits.maxEntries} are allowed`);
  const root = newFolder();
  const budget = new StepBudget(limits.maxResolveSteps);
  for (const [index, layer] of layers.entries()) applyLayer(root, layer, index, budget);
  return root;
}

interface Placed {
  readonly entry: ScannedEntry;
  readonly parts: readonly ByteText[];
}

function applyLayer(root: ImageFolder, layer: ImageLayer, index: number, budget: StepBudget): void {
  const plain: Placed[] = [];
  const whiteouts: Whiteout[] = [];
  for (const entry of layer.entries) {
    const parts = splitImagePath(entry.path);
    const whiteout = layer.whiteouts ? parseWhiteout(entry, parts) : undefined;
    if (whiteout === undefined) plain.push({ entry, parts });
    else whiteouts.push(whiteout);
  }
  for (const whiteout of whiteouts) {
    const folder = findFolder(root, whiteout.folder, budget);
    if (whiteout.kind === 'opaque') folder?.children.clear();
    else folder?.children.delete(whiteout.name);
  }
  for (const placed of plain) addEntry(root, placed, index, budget);
}

function addEntry(root: ImageFolder, { entry, parts }: Placed, layer: number, budget: StepBudget): void {
  const name = parts.at(-1);
  if (name === undefined) {
    if (entry.type !== 'directory') throw refusedEntry('a root that is no folder', entry.path);
    root.metadata = metadataOf(entry);
    return;
  }
  const folder = makeFolder(root, parts.slice(0, -1), budget);
  const before = folder.children.get(name);
  if (entry.type === 'directory') {
    // A folder over a folder changes what is said of it, not what lies in it.
    if (before?.type === 'directory') before.metadata = metadataOf(entry);
    else folder.children.set(name, newFolder(metadataOf(entry)));
  } else if (entry.type === 'hard-link') {
    folder.children.set(name, linkedFile(root, entry, budget));
  } else {
    folder.children.set(name, newFile(entry.type, entry, layer));
  }
}

/** What squashfs and the kernel could not hold is refused here, and not cut by a tool. */
function newFile(type: ImageFile['type'], entry: ScannedEntry, layer: number): ImageFile {
  const { offset, size, linkName, deviceMajor, deviceMinor, path } = entry;
  if (linkName.length > MAX_PATH_BYTES || linkName.includes('\0')) throw refusedEntry('a link that no kernel follows', path);
  const isDevice = type === 'character-device' || type === 'block-device';
  if (isDevice && !(isWithin(deviceMajor, MAX_MAJOR) && isWithin(deviceMinor, MAX_MINOR)))
    throw refusedEntry('a device with numbers that no kernel has', path);
  return {
    type,
    metadata: metadataOf(entry),
    content: type === 'file' ? { layer, offset, size } : undefined,
    target: linkName,
    deviceMajor: isDevice ? deviceMajor : 0,
    deviceMinor: isDevice ? deviceMinor : 0,
  };
}

function isWithin(value: number, most: number): boolean {
  return value >= 0 && value <= most;
}

/** What a hard link shares: something that an earlier entry of this layer or a lower layer put there. */
function linkedFile(root: ImageFolder, entry: ScannedEntry, budget: StepBudget): ImageFile {
  const parts = splitImagePath(entry.linkName);
  const target = findFolder(root, parts.slice(0, -1), budget)?.children.get(parts.at(-1) ?? '');
  if (target === undefined) throw refusedEntry('a hard link to something that is not there', entry.path);
  if (target.type === 'directory') throw refusedEntry('a hard link to a folder', entry.path);
  return target;
}

function metadataOf({ mode, uid, gid, mtime, xattrs }: EntryMetadata): EntryMetadata {
  return { mode, uid, gid, mtime, xattrs };
}
