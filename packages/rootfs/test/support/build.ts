import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BuildImageOptions, buildImage, type ImageManifest, ROOT_FILE } from '../../src/index.ts';
import { DEFAULT_IMAGE_LIMITS } from '../../src/limits.ts';
import { scanTar } from '../../src/tar/scan-tar.ts';
import type { TarEntry } from '../../src/tar/tar-entry.ts';
import { sourceOf } from './make-tar.ts';
import { runTool } from './tools.ts';

/** What a build gave. */
export interface Built {
  readonly facts: Omit<ImageManifest, 'files' | 'manifest'>;
  readonly file: string;
  readonly digest: string;
}

/** Builds an image into a fresh folder below `base`. */
export async function build(base: string, options: Omit<BuildImageOptions, 'architecture' | 'target' | 'work'>): Promise<Built> {
  const folder = mkdtempSync(join(base, 'build-'));
  const [target, work] = [join(folder, 'target'), join(folder, 'work')];
  mkdirSync(target);
  mkdirSync(work);
  const facts = await buildImage({ architecture: 'amd64', target, work, ...options });
  const file = join(target, ROOT_FILE);
  return { facts, file, digest: createHash('sha256').update(readFileSync(file)).digest('hex') };
}

/** An entry of a file system, with its content. */
export type ReadEntry = TarEntry & { readonly text: string };

/** What a squashfs file system holds, read back by the tools of its makers. */
export async function readSquashfs(file: string): Promise<Map<string, ReadEntry>> {
  const bytes = runTool('sqfs2tar', ['--root-becomes', 'root', file]);
  const found = new Map<string, ReadEntry>();
  for await (const entry of scanTar(sourceOf(bytes), DEFAULT_IMAGE_LIMITS)) {
    const text = bytes.subarray(entry.offset, entry.offset + entry.size).toString('latin1');
    found.set(entry.path.replace(/^root\/?/, '').replace(/\/$/, ''), { ...entry, text });
  }
  return found;
}
