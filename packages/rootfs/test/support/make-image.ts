import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { makeTar, type RawEntry } from './make-tar.ts';

/** One layer of a test image. */
export interface TestLayer {
  readonly entries: readonly RawEntry[];
  readonly compression?: 'none' | 'gzip' | 'zstd';
  /** In place of the right ones. */
  readonly diffId?: string;
  readonly mediaType?: string;
}

/** A test image. */
export interface TestImage {
  readonly layers: readonly TestLayer[];
  readonly name?: string;
  readonly architecture?: string;
  readonly os?: string;
  readonly config?: object;
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const SUFFIX = { none: '', gzip: '+gzip', zstd: '+zstd' } as const;

/** Files of an OCI layout by name. */
export function layoutFiles(images: readonly TestImage[]): Map<string, Buffer> {
  const files = new Map<string, Buffer>([['oci-layout', json({ imageLayoutVersion: '1.0.0' })]]);
  const add = (bytes: Buffer, mediaType: string): { mediaType: string; digest: string; size: number } => {
    files.set(`blobs/sha256/${sha256(bytes)}`, bytes);
    return { mediaType, digest: `sha256:${sha256(bytes)}`, size: bytes.length };
  };
  const manifests = images.map((image) => {
    const layers = image.layers.map(({ entries, compression = 'gzip', mediaType }) =>
      add(compress(makeTar(entries), compression), mediaType ?? `application/vnd.oci.image.layer.v1.tar${SUFFIX[compression]}`),
    );
    const config = add(json(configOf(image)), 'application/vnd.oci.image.config.v1+json');
    const manifest = add(json({ schemaVersion: 2, config, layers }), 'application/vnd.oci.image.manifest.v1+json');
    return {
      ...manifest,
      platform: { os: image.os ?? 'linux', architecture: image.architecture ?? 'amd64' },
      ...(image.name === undefined ? {} : { annotations: { 'org.opencontainers.image.ref.name': image.name } }),
    };
  });
  files.set('index.json', json({ schemaVersion: 2, manifests }));
  return files;
}

/** Files of the archive that `docker save` writes, as old versions did: a folder for each layer. */
export function savedFiles({ layers, name = 'tool:1', ...image }: TestImage): Map<string, Buffer> {
  const config = json(configOf({ layers, ...image }));
  const files = new Map<string, Buffer>([[`${sha256(config)}.json`, config]]);
  const names = layers.map(({ entries, compression = 'none' }, at) => {
    files.set(`layer${at}/layer.tar`, compress(makeTar(entries), compression));
    return `layer${at}/layer.tar`;
  });
  files.set('manifest.json', json([{ Config: `${sha256(config)}.json`, RepoTags: [name], Layers: names }]));
  return files;
}

/** Writes files below a folder. */
export function writeFiles(folder: string, files: ReadonlyMap<string, Buffer>): string {
  for (const [name, bytes] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), bytes);
  }
  return folder;
}

/** The same as an archive. */
export function archiveFiles(files: ReadonlyMap<string, Buffer>): Buffer {
  return makeTar([...files].map(([name, content]) => ({ name, content })));
}

/** A JSON document. */
export function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function configOf({ layers, architecture = 'amd64', os = 'linux', config }: TestImage): object {
  const diffIds = layers.map(({ entries, diffId }) => diffId ?? `sha256:${sha256(makeTar(entries))}`);
  return { architecture, os, config, rootfs: { type: 'layers', diff_ids: diffIds } };
}

function compress(bytes: Buffer, compression: 'none' | 'gzip' | 'zstd'): Buffer {
  return compression === 'none' ? bytes : compression === 'gzip' ? gzipSync(bytes) : zstdCompressSync(bytes);
}
