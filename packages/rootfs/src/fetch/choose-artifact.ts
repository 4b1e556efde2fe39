import type { ArtifactDigest } from '../store/artifact-manifest.ts';
import type { MissingArtifact } from '../store/boot-files.ts';

/** What is to be done about an artifact that a host lacks. */
export type ArtifactChoice =
  | {
      readonly verdict: 'fetch';
      readonly id: ArtifactDigest;
      /** The name that is to lead to it; null where it was wanted by id, or its name leads there already. */
      readonly name: string | null;
    }
  | { readonly verdict: 'absent' };

/**
 * Which artifact stands behind what a host was told to boot from. What is known by content is fetched by content, whatever the names of the
 * server say now; a name that leads nowhere here is looked up there once, and then belongs to this host.
 */
export function chooseArtifact({ id, reference }: MissingArtifact, offered: ReadonlyMap<string, ArtifactDigest>): ArtifactChoice {
  if (id !== null) return { verdict: 'fetch', id, name: null };
  const named = offered.get(reference);
  return named === undefined ? { verdict: 'absent' } : { verdict: 'fetch', id: named, name: reference };
}
