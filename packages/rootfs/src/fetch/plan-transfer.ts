import type { ArtifactFile } from '../store/artifact-manifest.ts';

/** One file that has to come, and the byte to go on from; what is kept behind that byte is cut off. */
export interface TransferStep {
  readonly file: ArtifactFile;
  /** In bytes. */
  readonly from: number;
}

/** What of an artifact has to come, or why it cannot. */
export type TransferPlan =
  | { readonly verdict: 'transfer'; readonly steps: readonly TransferStep[]; readonly bytes: number; readonly keptBytes: number }
  | { readonly verdict: 'no_room'; readonly bytes: number; readonly lackingBytes: number };

/** Room on the disk of a store, in bytes. */
export interface DiskRoom {
  readonly freeBytes: number;
  /** What has to stay free. */
  readonly reserveBytes: number;
}

/**
 * Decides what of an artifact has to come, given how many bytes of each of its files are kept. A file that is kept whole is not asked for
 * again: its digest is taken with all others before the artifact is published. A file that is kept with too many bytes is another one, and
 * begins anew. Nothing comes while it would eat into the reserve.
 */
export function planTransfer(files: readonly ArtifactFile[], kept: ReadonlyMap<string, number>, room: DiskRoom): TransferPlan {
  const steps: TransferStep[] = [];
  let bytes = 0;
  let keptBytes = 0;
  for (const file of files) {
    const here = kept.get(file.name);
    const from = here === undefined || here > file.sizeBytes ? 0 : here;
    keptBytes += from;
    if (here === file.sizeBytes) continue;
    steps.push({ file, from });
    bytes += file.sizeBytes - from;
  }
  const lackingBytes = bytes + room.reserveBytes - room.freeBytes;
  if (bytes > 0 && lackingBytes > 0) return { verdict: 'no_room', bytes, lackingBytes };
  return { verdict: 'transfer', steps, bytes, keptBytes };
}
