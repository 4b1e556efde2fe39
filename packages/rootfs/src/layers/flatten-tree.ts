import { type ByteText, compareText, type EntryMetadata, type TarEntry } from '../tar/tar-entry.ts';
import type { ContentPlace, ImageFile, ImageFolder, ImageNode } from './image-tree.ts';

/** One entry of the flattened image, and where its content is to be taken from. */
export interface FlatEntry {
  readonly entry: TarEntry;
  readonly content: ContentPlace | undefined;
}

/** The times that files of an image get: their own, or one for all. */
export type ImageTimes = { readonly kind: 'kept' } | { readonly kind: 'fixed'; readonly seconds: number };

/**
 * The entries of a tree in canonical order: the root, then depth first with the names of each folder in the order of their bytes. Of a file
 * with several names the first one carries it and the others are hard links to that.
 */
export function* flattenTree(root: ImageFolder, times: ImageTimes): Generator<FlatEntry> {
  const firstNames = new Map<ImageFile, ByteText>();
  const ahead: { readonly path: ByteText; readonly node: ImageNode }[] = [{ path: '.', node: root }];
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { path, node } = next;
    if (node.type === 'directory') {
      yield { entry: folderEntry(path, node, times), content: undefined };
      const names = [...node.children].sort(([a], [b]) => compareText(b, a));
      for (const [name, child] of names) ahead.push({ path: path === '.' ? name : `${path}/${name}`, node: child });
      continue;
    }
    const first = firstNames.get(node);
    if (first === undefined) firstNames.set(node, path);
    yield first === undefined ? fileEntry(path, node, times) : { entry: linkEntry(path, first, node, times), content: undefined };
  }
}

/** Files, folders, links and devices of a tree, names of one file counted once: the inodes of a file system that holds it. */
export function countInodes(entries: readonly FlatEntry[]): number {
  return entries.filter(({ entry }) => entry.type !== 'hard-link').length;
}

function folderEntry(path: ByteText, folder: ImageFolder, times: ImageTimes): TarEntry {
  const metadata = timed(folder, times);
  return { ...metadata, type: 'directory', path: `${path}/`, size: 0, linkName: '', deviceMajor: 0, deviceMinor: 0 };
}

function fileEntry(path: ByteText, file: ImageFile, times: ImageTimes): FlatEntry {
  const { type, content, target, deviceMajor, deviceMinor } = file;
  const entry = { ...timed(file, times), type, path, size: content?.size ?? 0, linkName: target, deviceMajor, deviceMinor };
  return { entry, content };
}

function linkEntry(path: ByteText, first: ByteText, file: ImageFile, times: ImageTimes): TarEntry {
  const metadata = { ...timed(file, times), xattrs: new Map() };
  return { ...metadata, type: 'hard-link', path, size: 0, linkName: first, deviceMajor: 0, deviceMinor: 0 };
}

function timed({ metadata }: ImageNode, times: ImageTimes): EntryMetadata {
  return times.kind === 'kept' ? metadata : { ...metadata, mtime: times.seconds };
}
