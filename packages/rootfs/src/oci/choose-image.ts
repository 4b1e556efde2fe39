import { CodedError } from '@firecrew/base';
import { type Descriptor, malformedImage, type SavedImage } from './documents.ts';

/** Names of processors, as images and Debian write them. */
export type Architecture = 'amd64' | 'arm64';

const INDEX_TYPES = ['application/vnd.oci.image.index.v1+json', 'application/vnd.docker.distribution.manifest.list.v2+json'];
const MANIFEST_TYPES = ['application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json'];
const NAME_KEYS = ['org.opencontainers.image.ref.name', 'io.containerd.image.name'];
/** Variants of arm64 that every such processor runs. */
const PLAIN_VARIANTS: readonly (string | undefined)[] = [undefined, '', 'v8'];

/** How a layer is compressed. */
export type LayerCompression = 'none' | 'gzip' | 'zstd';

const LAYER_TYPES: Readonly<Record<string, LayerCompression>> = {
  'application/vnd.oci.image.layer.v1.tar': 'none',
  'application/vnd.oci.image.layer.v1.tar+gzip': 'gzip',
  'application/vnd.oci.image.layer.v1.tar+zstd': 'zstd',
  'application/vnd.oci.image.layer.nondistributable.v1.tar': 'none',
  'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip': 'gzip',
  'application/vnd.oci.image.layer.nondistributable.v1.tar+zstd': 'zstd',
  'application/vnd.docker.image.rootfs.diff.tar': 'none',
  'application/vnd.docker.image.rootfs.diff.tar.gzip': 'gzip',
  'application/vnd.docker.image.rootfs.diff.tar.zstd': 'zstd',
  'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip': 'gzip',
};

/** Compression of a layer by its media type, never by looking at it. Throws `image_unsupported`. */
export function layerCompression(mediaType: string): LayerCompression {
  const found = Object.hasOwn(LAYER_TYPES, mediaType) ? LAYER_TYPES[mediaType] : undefined;
  if (found !== undefined) return found;
  throw new CodedError('image_unsupported', `a layer is of the media type ${mediaType}, which is not read here`, {
    id: mediaType,
    action: 'Convert the image to OCI layers of tar, tar+gzip or tar+zstd.',
  });
}

/** Whether a descriptor leads to another index, or to the manifest of one image. Throws `image_unsupported`. */
export function descriptorKind({ mediaType }: Descriptor): 'index' | 'manifest' {
  if (INDEX_TYPES.includes(mediaType)) return 'index';
  if (MANIFEST_TYPES.includes(mediaType)) return 'manifest';
  throw new CodedError('image_unsupported', `an entry of the index is of the media type ${mediaType}, which is no image`, {
    id: mediaType,
    action: 'Write a layout that holds images.',
  });
}

/**
 * The one image of an index for a name and a processor. An entry without a platform fits until its configuration says otherwise. Throws
 * `image_not_found`, `image_ambiguous`.
 */
export function chooseDescriptor(
  descriptors: readonly Descriptor[],
  architecture: Architecture,
  reference: string | undefined,
): Descriptor {
  const named = reference === undefined ? descriptors : descriptors.filter((one) => namesOf(one).some((name) => matches(name, reference)));
  const fitting = named.filter(({ platform }) => platform === undefined || fits(platform, architecture));
  return only(fitting, descriptors.flatMap(namesOf), architecture, reference);
}

/** The one image of a saved archive. Throws `image_not_found`, `image_ambiguous`. */
export function chooseSaved(images: readonly SavedImage[], architecture: Architecture, reference: string | undefined): SavedImage {
  const tags = (one: SavedImage): readonly string[] => one.RepoTags ?? [];
  const named = reference === undefined ? images : images.filter((one) => tags(one).some((name) => matches(name, reference)));
  return only(named, images.flatMap(tags), architecture, reference);
}

/** Throws `image_malformed`, `image_not_found` when an image is not for Linux on this processor. */
export function checkPlatform(platform: { readonly os: string; readonly architecture: string }, architecture: Architecture): void {
  if (platform.os !== 'linux') throw malformedImage(`it is for ${JSON.stringify(platform.os)}, not for linux`);
  if (platform.architecture !== architecture)
    throw new CodedError('image_not_found', `the image is for ${JSON.stringify(platform.architecture)}, and ${architecture} is wanted`, {
      id: architecture,
      action: `Write one for linux/${architecture}.`,
    });
}

function only<T>(fitting: readonly T[], names: readonly string[], architecture: Architecture, reference: string | undefined): T {
  const [first] = fitting;
  if (first !== undefined && fitting.length === 1) return first;
  const known = names.length === 0 ? 'none of them has a name' : `there are ${names.slice(0, 20).join(', ')}`;
  const wanted = `${reference === undefined ? 'an image' : `an image named ${reference}`} for linux/${architecture}`;
  if (first === undefined)
    throw new CodedError('image_not_found', `the source does not hold ${wanted}; ${known}`, {
      ...(reference === undefined ? {} : { id: reference }),
      action: 'Name one that is there, or write the layout for this processor.',
    });
  throw new CodedError('image_ambiguous', `the source holds ${fitting.length} times ${wanted}; ${known}`, {
    action: 'Say which one with --reference.',
  });
}

function namesOf({ annotations }: Descriptor): readonly string[] {
  return NAME_KEYS.flatMap((key) => {
    const name = annotations === undefined || !Object.hasOwn(annotations, key) ? undefined : annotations[key];
    return name === undefined ? [] : [name];
  });
}

/** A short name is the end of a full one: `tool:1` of `registry/team/tool:1`, and `1` of `tool:1`. */
function matches(name: string, reference: string): boolean {
  return name === reference || name.endsWith(`/${reference}`) || name.endsWith(`:${reference}`);
}

function fits({ os, architecture, variant }: NonNullable<Descriptor['platform']>, wanted: Architecture): boolean {
  return os === 'linux' && architecture === wanted && PLAIN_VARIANTS.includes(variant);
}
