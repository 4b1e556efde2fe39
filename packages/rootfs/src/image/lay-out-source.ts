import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageTimes } from '../layers/flatten-tree.ts';
import { filesOfArchive, filesOfFolder, type ImageFiles } from '../oci/blob-store.ts';
import { findImage, spoolLayers } from '../oci/read-image.ts';
import type { ManifestSource } from '../store/artifact-manifest.ts';
import { openFileSource } from '../tar/byte-source.ts';
import { imageTooLarge } from '../tar/refusals.ts';
import { archiveFolder, archiveSuite, parseSuite } from './archive-of.ts';
import { type BuildContext, type OpenLayer, openLayer, scanAll } from './build-context.ts';
import { PLAIN_RUN_FACTS, type RunFacts, runFactsOf } from './image-facts.ts';

/** The time of every file of an image whose source has none of its own: 2000-01-01, since archivers refuse times before 1980. */
export const FIXED_TIME_SECONDS = 946_684_800;
/** What an image is built from. */
export type ImageSource =
  /** A folder of this machine. `root` gives everything to root; `kept` takes owners as they are. Its times are not kept. */
  | { readonly kind: 'directory'; readonly path: string; readonly owners: 'kept' | 'root' }
  /** A folder with `oci-layout`, as skopeo and buildx write it. */
  | { readonly kind: 'oci-layout'; readonly path: string; readonly reference?: string | undefined }
  /** A file as `docker save` or `podman save` writes it, or an OCI layout in a tar. */
  | { readonly kind: 'docker-archive'; readonly path: string; readonly reference?: string | undefined }
  /** A suite such as `debian:bookworm`, installed now from the network. */
  | { readonly kind: 'suite'; readonly suite: string; readonly packages: readonly string[]; readonly mirror?: string | undefined };

/** The layers of a source, the lowest first, and what it says of itself. */
export interface LaidOut {
  readonly layers: readonly OpenLayer[];
  readonly source: ManifestSource;
  readonly run: RunFacts;
  readonly times: ImageTimes;
}

/** Writes the archives of a source into the work folder and opens them. Throws as `buildImage` says. */
export async function layOutSource(context: BuildContext, source: ImageSource): Promise<LaidOut> {
  switch (source.kind) {
    case 'directory':
      return await layOutFolder(context, source);
    case 'suite':
      return await layOutSuite(context, source);
    case 'oci-layout':
      return await layOutImage(context, source, filesOfFolder(source.path));
    case 'docker-archive':
      return await layOutImage(context, source, await openArchive(context, source.path));
  }
}

async function layOutFolder(context: BuildContext, source: ImageSource & { readonly kind: 'directory' }): Promise<LaidOut> {
  context.say({ step: 'reading the folder' });
  const file = join(context.work, 'folder.tar');
  await archiveFolder(source.path, file, { budget: context.budget, signal: context.signal });
  const open = await openLayer(context, file, { whiteouts: false, taken: 0 });
  const entries = source.owners === 'kept' ? open.layer.entries : open.layer.entries.map((entry) => ({ ...entry, uid: 0, gid: 0 }));
  const layers = [{ archive: open.archive, layer: { entries, whiteouts: false } }];
  return { layers, source: { kind: 'directory' }, run: PLAIN_RUN_FACTS, times: { kind: 'fixed', seconds: FIXED_TIME_SECONDS } };
}

async function layOutSuite(context: BuildContext, source: ImageSource & { readonly kind: 'suite' }): Promise<LaidOut> {
  context.say({ step: `installing ${parseSuite(source.suite)} from the network` });
  const file = join(context.work, 'suite.tar');
  const { architecture, signal } = context;
  const { suite, packages, mirror } = source;
  await archiveSuite({ suite, packages, mirror, architecture }, file, { budget: context.budget, signal });
  const layers = [await openLayer(context, file, { whiteouts: false, taken: 0 })];
  return { layers, source: { kind: 'suite', suite, packages: [...packages] }, run: PLAIN_RUN_FACTS, times: { kind: 'kept' } };
}

async function layOutImage(
  context: BuildContext,
  source: ImageSource & { readonly kind: 'oci-layout' | 'docker-archive' },
  files: ImageFiles,
): Promise<LaidOut> {
  const { architecture, work, signal, limits, budget, say } = context;
  try {
    const found = await findImage(files, architecture, source.reference);
    const count = found.layers.length;
    if (count > limits.maxLayers) throw imageTooLarge(`the image has ${count} layers; ${limits.maxLayers} are allowed`);
    const onLayer = (done: number): void => say({ step: `reading layer ${done} of ${count}`, fraction: done / Math.max(count, 1) });
    const folder = join(work, 'layers');
    await mkdir(folder);
    const layers: OpenLayer[] = [];
    let taken = 0;
    for (const file of await spoolLayers(found, folder, { budget, signal, onLayer })) {
      const open = await openLayer(context, file, { whiteouts: true, taken });
      taken += open.layer.entries.length;
      layers.push(open);
    }
    const { kind, reference } = source;
    return {
      layers,
      source: { kind, reference: reference ?? null, digest: found.digest },
      run: runFactsOf(found.config),
      times: { kind: 'kept' },
    };
  } finally {
    await files.close();
  }
}

async function openArchive({ limits, opened }: BuildContext, path: string): Promise<ImageFiles> {
  const archive = await openFileSource(path);
  opened.push(archive);
  return filesOfArchive(archive, await scanAll(archive, limits, 0));
}
