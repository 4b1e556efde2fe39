import type { ImageLayer } from '../layers/merge-layers.ts';
import type { ImageLimits } from '../limits.ts';
import type { Architecture } from '../oci/choose-image.ts';
import type { ByteBudget } from '../oci/spool-archive.ts';
import type { OnProgress } from '../progress.ts';
import { type FileSource, openFileSource } from '../tar/byte-source.ts';
import { imageTooLarge } from '../tar/refusals.ts';
import { type ByteSource, type ScannedEntry, scanTar } from '../tar/scan-tar.ts';

/** What the steps of one build share. */
export interface BuildContext {
  readonly architecture: Architecture;
  /** A folder for archives on the way. */
  readonly work: string;
  readonly signal: AbortSignal | undefined;
  readonly limits: ImageLimits;
  readonly budget: ByteBudget;
  readonly say: OnProgress;
  /** Archives that were opened; closed when the build has ended, however it did. */
  readonly opened: FileSource[];
}

/** A layer and the archive its contents come from. */
export interface OpenLayer {
  readonly layer: ImageLayer;
  readonly archive: FileSource;
}

/** Opens an archive and reads its entries; `taken` entries of the image were read before. */
export async function openLayer(
  { limits, opened }: BuildContext,
  file: string,
  { whiteouts, taken }: { readonly whiteouts: boolean; readonly taken: number },
): Promise<OpenLayer> {
  const archive = await openFileSource(file);
  opened.push(archive);
  return { archive, layer: { entries: await scanAll(archive, limits, taken), whiteouts } };
}

/** All entries of an archive, `taken` others of the image having been read. Throws `image_too_large` and what {@link scanTar} throws. */
export async function scanAll(archive: ByteSource, limits: ImageLimits, taken: number): Promise<ScannedEntry[]> {
  const entries: ScannedEntry[] = [];
  for await (const entry of scanTar(archive, limits)) {
    entries.push(entry);
    if (taken + entries.length > limits.maxEntries) throw imageTooLarge(`the image has more than ${limits.maxEntries} entries`);
  }
  return entries;
}
