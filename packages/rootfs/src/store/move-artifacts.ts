import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CodedError } from '@firecrew/base';
import { openFileSource, partOf, streamSource } from '../tar/byte-source.ts';
import { type ScannedEntry, scanTar } from '../tar/scan-tar.ts';
import type { TarEntry } from '../tar/tar-entry.ts';
import { paddingOf } from '../tar/tar-header.ts';
import { TAR_END_BYTES, writeTarHeader } from '../tar/write-tar.ts';
import { type ArtifactDigest, MAX_ARTIFACT_FILES, MAX_MANIFEST_BYTES, manifestId, parseManifest } from './artifact-manifest.ts';
import { type ImageStore, MANIFEST_FILE, type OpenArtifact, type StoredArtifact } from './image-store.ts';
import { wrongDigest } from './store-errors.ts';

const STEP_BYTES = 1024 * 1024;
/** Sizes from 8 GiB stand in an extension header; nothing else does. */
const MAX_EXTENSION_BYTES = 512;

/**
 * One archive of an artifact: its manifest, then its files in the order of the manifest. The same artifact gives the same bytes, and whoever
 * has the manifest knows where each file begins. The caller closes the artifact.
 */
export async function* exportArtifact(artifact: OpenArtifact): AsyncGenerator<Buffer> {
  const bytes = artifact.manifestBytes;
  yield fileHeader(MANIFEST_FILE, bytes.length);
  yield Buffer.concat([bytes, Buffer.alloc(paddingOf(bytes.length))]);
  for (const { name, sizeBytes } of artifact.manifest.files) {
    yield fileHeader(name, sizeBytes);
    const handle = artifact.files.get(name)?.handle;
    for (let at = 0; at < sizeBytes; ) {
      const buffer = Buffer.allocUnsafe(Math.min(STEP_BYTES, sizeBytes - at));
      const bytesRead = (await handle?.read(buffer, 0, buffer.length, at))?.bytesRead ?? 0;
      if (bytesRead === 0) throw wrongDigest(artifact.id, name);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
    yield Buffer.alloc(paddingOf(sizeBytes));
  }
  yield Buffer.alloc(TAR_END_BYTES);
}

/**
 * Takes an artifact from an archive that {@link exportArtifact} wrote, and nothing else: every entry is one that the manifest names, with its
 * size and digest. `expected` refuses any other artifact. Throws `import_malformed`, `image_digest_wrong`, `manifest_malformed`,
 * `source_unreadable`, `layer_malformed`, `layer_cut`, `entry_refused`, `image_store_failed`.
 */
export async function importArtifact(store: ImageStore, file: string, expected?: ArtifactDigest): Promise<StoredArtifact> {
  const source = await openFileSource(file);
  try {
    const entries: ScannedEntry[] = [];
    for await (const entry of scanTar(source, { maxEntries: MAX_ARTIFACT_FILES + 1, maxMetaBytes: MAX_EXTENSION_BYTES }))
      entries.push(entry);
    const [first, ...rest] = entries;
    if (first?.path !== MANIFEST_FILE || first.type !== 'file' || first.size > MAX_MANIFEST_BYTES)
      throw malformed('it does not begin with a manifest');
    const manifestBytes = Buffer.from(await source.read(first.offset, first.size));
    if (expected !== undefined && manifestId(manifestBytes) !== expected) throw wrongDigest(expected, 'the manifest');
    checkEntries(rest, manifestBytes);
    return await store.addExact(manifestBytes, async (target) => {
      for (const { path, offset, size } of rest) {
        await mkdir(dirname(join(target, path)), { recursive: true });
        const output = createWriteStream(join(target, path), { flags: 'wx', mode: 0o600 });
        await pipeline(Readable.from(streamSource(partOf(source, offset, size)), { objectMode: false }), output);
      }
    });
  } finally {
    await source.close();
  }
}

/** Names come from the manifest, whose schema allows plain ones alone; the archive has to say the same. */
function checkEntries(entries: readonly ScannedEntry[], manifestBytes: Buffer): void {
  const { files } = parseManifest(manifestBytes);
  const isExact =
    entries.length === files.length &&
    files.every(({ name, sizeBytes }, at) => {
      const entry = entries[at];
      return entry?.type === 'file' && entry.path === name && entry.size === sizeBytes;
    });
  if (!isExact) throw malformed('it does not hold exactly the files of its manifest, in their order');
}

function fileHeader(name: string, size: number): Buffer {
  const entry: TarEntry = {
    ...{ type: 'file', path: name, size, linkName: '', mode: 0o444, uid: 0, gid: 0, mtime: 0 },
    ...{ deviceMajor: 0, deviceMinor: 0, xattrs: new Map() },
  };
  return writeTarHeader(entry);
}

function malformed(what: string): CodedError {
  return new CodedError('import_malformed', `the archive cannot be imported: ${what}`, {
    action: 'Import a file that firecrew image export wrote.',
  });
}
