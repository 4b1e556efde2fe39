import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { splitImagePath } from '../layers/image-path.ts';
import { MAX_DOCUMENT_BYTES } from '../limits.ts';
import { type FileSource, openFileSource, partOf, streamSource } from '../tar/byte-source.ts';
import type { ByteSource, ScannedEntry } from '../tar/scan-tar.ts';
import { type Descriptor, malformedImage } from './documents.ts';

/** The files of an image source by name: a folder, or an archive that holds the same. */
export interface ImageFiles {
  /** Opens a file; undefined where there is none. */
  open(name: string): Promise<ByteSource | undefined>;
  close(): Promise<void>;
}

/** Links that a name in a saved archive may go through. */
const MAX_SAVED_LINKS = 4;

/** The files below a folder. Names are made of digests and constants, never of text from an image. */
export function filesOfFolder(root: string): ImageFiles {
  const open: FileSource[] = [];
  return {
    open: async (name) => {
      try {
        const source = await openFileSource(join(root, name));
        open.push(source);
        return source;
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    close: async () => {
      for (const source of open) await source.close();
    },
  };
}

/** The files of an archive that was scanned and stays the caller's to close. Links between them are followed inside the archive, as old saved archives need it. */
export function filesOfArchive(archive: ByteSource, entries: readonly ScannedEntry[]): ImageFiles {
  const byName = new Map(entries.map((entry) => [splitImagePath(entry.path).join('/'), entry]));
  const find = (name: string, links: number): ByteSource | undefined => {
    const entry = byName.get(name);
    if (entry === undefined) return undefined;
    if (entry.type === 'file') return partOf(archive, entry.offset, entry.size);
    if (links >= MAX_SAVED_LINKS || (entry.type !== 'symbolic-link' && entry.type !== 'hard-link')) return undefined;
    return find(targetOf(name, entry), links + 1);
  };
  return { open: async (name) => find(name, 0), close: async () => undefined };
}

/** A name relative to the root of the archive; what leads out of it names nothing there. */
function targetOf(name: string, { type, linkName }: ScannedEntry): string {
  if (type === 'hard-link') return splitImagePath(linkName).join('/');
  const parts = name.split('/').slice(0, -1);
  for (const part of linkName.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}

/** The path of a blob in a layout. */
export function blobName(digest: string): string {
  const [algorithm, hex] = digest.split(':');
  return `blobs/${algorithm}/${hex}`;
}

/** A whole small document of an image. Throws `image_malformed` where it is not there or too large. */
export async function readDocument(files: ImageFiles, name: string): Promise<Buffer | undefined> {
  const source = await files.open(name);
  if (source === undefined) return undefined;
  if (source.size > MAX_DOCUMENT_BYTES) throw malformedImage(`${name} has ${source.size} bytes; ${MAX_DOCUMENT_BYTES} are allowed`);
  return source.size === 0 ? Buffer.alloc(0) : await source.read(0, source.size);
}

/** A document that a descriptor leads to, checked against it. Throws `image_malformed`, `digest_mismatch`. */
export async function readBlobDocument(files: ImageFiles, { digest, size }: Descriptor): Promise<Buffer> {
  const bytes = await readDocument(files, blobName(digest));
  if (bytes === undefined) throw malformedImage(`the blob ${digest} is missing`);
  if (bytes.length !== size) throw malformedImage(`the blob ${digest} has ${bytes.length} bytes, not ${size}`);
  checkDigest(digest, createHash(algorithmOf(digest)).update(bytes).digest('hex'));
  return bytes;
}

/** The bytes of a source while their digest is taken; throws `digest_mismatch` behind the last one when it is another. */
export async function* verified(source: ByteSource, digest: string): AsyncGenerator<Buffer> {
  const hash = createHash(algorithmOf(digest));
  for await (const part of streamSource(source)) {
    hash.update(part);
    yield part;
  }
  checkDigest(digest, hash.digest('hex'));
}

/** The name of a digest's algorithm as Node has it. */
export function algorithmOf(digest: string): string {
  return digest.slice(0, digest.indexOf(':'));
}

/** Throws `digest_mismatch`. */
export function checkDigest(digest: string, hex: string): void {
  if (digest === `${algorithmOf(digest)}:${hex}`) return;
  throw new CodedError('digest_mismatch', `a blob has the digest ${hex}, and its image says ${digest}`, {
    id: digest,
    action: 'Fetch or write the image again: it is damaged or was changed.',
  });
}

function isMissing(error: unknown): boolean {
  const { cause } = error instanceof CodedError ? error : { cause: undefined };
  return typeof cause === 'object' && cause !== null && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR');
}
