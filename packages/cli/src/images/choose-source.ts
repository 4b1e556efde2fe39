import type { ImageSource } from '@firecrew/rootfs';
import { UsageError } from '../exit-codes.ts';

/** What is known of the place that `--from` names. */
export interface SourcePlace {
  /** Absolute path. */
  readonly path: string;
  readonly kind: 'folder' | 'layout' | 'file' | 'none';
}

/** Options of `image build` that concern the source. */
export interface SourceOptions {
  readonly from: string;
  readonly reference: string | undefined;
  readonly keepOwners: boolean;
  readonly packages: readonly string[];
  readonly mirror: string | undefined;
}

const SUITE = /^(debian|ubuntu):[a-z0-9-]+$/;

/** What an image is built from. Throws {@link UsageError} `usage_wrong` for what cannot be meant. */
export function chooseSource(options: SourceOptions, place: SourcePlace): ImageSource {
  const { from, reference, keepOwners, packages, mirror } = options;
  const isSuite = SUITE.test(from) && place.kind === 'none';
  if (!isSuite && (packages.length > 0 || mirror !== undefined))
    throw wrong('--package and --mirror are for suites', 'Leave them out, or build from a suite such as debian:bookworm.');
  if (reference !== undefined && place.kind !== 'layout' && place.kind !== 'file')
    throw wrong('--reference is for an OCI layout or a saved archive', 'Leave it out.');
  if (keepOwners && place.kind !== 'folder') throw wrong('--keep-owners is for a folder', 'Leave it out: other sources keep theirs.');
  if (isSuite) {
    if (mirror !== undefined && !/^(https?|file):\/\//.test(mirror)) throw wrong('--mirror is no URL', 'Write it as https://HOST/debian.');
    return { kind: 'suite', suite: from, packages, mirror };
  }
  switch (place.kind) {
    case 'folder':
      return { kind: 'directory', path: place.path, owners: keepOwners ? 'kept' : 'root' };
    case 'layout':
      return { kind: 'oci-layout', path: place.path, reference };
    case 'file':
      return { kind: 'docker-archive', path: place.path, reference };
    case 'none':
      throw wrong(
        `${JSON.stringify(from)} is no folder, no file and no suite`,
        'Give a folder, an OCI layout, a file of docker save, or a suite such as debian:bookworm.',
      );
  }
}

function wrong(message: string, action: string): UsageError {
  return new UsageError('usage_wrong', message, { action });
}
