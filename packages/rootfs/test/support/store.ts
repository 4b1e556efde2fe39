import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ArtifactFacts, ImageStore, StoredArtifact } from '../../src/index.ts';

/** Facts of a small image. */
export const IMAGE_FACTS: ArtifactFacts & { readonly kind: 'image' } = {
  kind: 'image',
  architecture: 'amd64',
  format: 'squashfs',
  source: { kind: 'directory' },
  npm: [],
  environment: { B: '2', A: '1' },
  user: '',
  workingDirectory: '/',
  entryCount: 1,
  times: { kind: 'kept' },
};

/** Facts of a small kernel. */
export const KERNEL_FACTS: ArtifactFacts = {
  kind: 'kernel',
  architecture: 'amd64',
  version: '6.1.0',
  modules: [{ name: 'virtio', file: 'modules/virtio.ko' }],
  builtIn: [],
  missing: [],
};

/** Keeps an artifact with these files. */
export async function addFiles(
  store: ImageStore,
  files: Readonly<Record<string, string>>,
  facts: ArtifactFacts = IMAGE_FACTS,
): Promise<StoredArtifact> {
  return await store.add(async ({ target }) => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(target, name)), { recursive: true });
      await writeFile(join(target, name), text);
    }
    return facts;
  });
}
