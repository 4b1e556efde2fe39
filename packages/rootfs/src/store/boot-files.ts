import { CodedError } from '@firecrew/base';
import { ROOT_FILE } from '../image/build-image.ts';
import { BZIMAGE_FILE, INITRD_FILE, VMLINUX_FILE } from '../kernel/extract-kernel.ts';
import { PAYLOAD_FILE } from '../payload/build-payload.ts';
import type { ArtifactDigest, ArtifactKind } from './artifact-manifest.ts';
import { ArtifactNames } from './artifact-names.ts';
import { ImageStore, type OpenArtifact, type VerifiedFile } from './image-store.ts';

/** Names under which a store keeps what every VM needs beside its image. */
export const KERNEL_NAME = 'kernel';
export const PAYLOAD_NAME = 'payload';
/** Image of backends that name none. */
export const DEFAULT_IMAGE_NAME = 'default';
/** PATH of an image that declares none. */
export const PLAIN_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The artifacts one VM is made of. */
export interface BootArtifacts {
  readonly kernel: ArtifactDigest;
  readonly payload: ArtifactDigest;
  readonly image: ArtifactDigest;
}

/** What a VM boots from, read against its digests and held open. */
export interface BootFiles {
  /** The kernel as its makers packed it. */
  readonly kernel: VerifiedFile;
  /** The same kernel unpacked, for a VMM that cannot unpack one. */
  readonly vmlinux: VerifiedFile;
  readonly initrd: VerifiedFile;
  readonly base: VerifiedFile;
  readonly payload: VerifiedFile;
  /** PATH that the image declares. */
  readonly path: string;
  close(): Promise<void>;
}

/** The ids behind kernel, payload and an image's name. Throws `image_unknown` for the first that the store does not have. */
export async function findBootArtifacts(root: string, image: string = DEFAULT_IMAGE_NAME): Promise<BootArtifacts> {
  const names = new ArtifactNames(root);
  const find = async (name: string, command: string): Promise<ArtifactDigest> => {
    const id = await names.get(name);
    if (id !== undefined) return id;
    throw new CodedError('image_unknown', `the store ${root} has nothing named ${name}`, { id: name, action: `Make it: ${command}` });
  };
  return {
    kernel: await find(KERNEL_NAME, 'firecrew image kernel --from FILE'),
    payload: await find(PAYLOAD_NAME, 'firecrew image payload'),
    image: await find(image, `firecrew image build ${image} --from SOURCE`),
  };
}

/**
 * Opens what a VM boots from and reads all of it against its digests, so that what is used is what was checked. Throws
 * `image_unknown`, `image_kind_wrong`, `image_digest_wrong`, `image_store_failed`.
 */
export async function openBootFiles(root: string, ids: BootArtifacts, signal?: AbortSignal): Promise<BootFiles> {
  const store = new ImageStore(root);
  const opened: OpenArtifact[] = [];
  const close = async (): Promise<void> => {
    for (const artifact of opened) await artifact.close();
  };
  const open = async (id: ArtifactDigest, kind: ArtifactKind): Promise<OpenArtifact> => {
    const artifact = await store.openVerified(id, kind, signal);
    opened.push(artifact);
    return artifact;
  };
  try {
    const kernel = await open(ids.kernel, 'kernel');
    const payload = await open(ids.payload, 'payload');
    const image = await open(ids.image, 'image');
    return {
      kernel: fileOf(kernel, BZIMAGE_FILE),
      vmlinux: fileOf(kernel, VMLINUX_FILE),
      initrd: fileOf(kernel, INITRD_FILE),
      base: fileOf(image, ROOT_FILE),
      payload: fileOf(payload, PAYLOAD_FILE),
      path: image.manifest.kind === 'image' ? (image.manifest.environment.PATH ?? PLAIN_PATH) : PLAIN_PATH,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function fileOf(artifact: OpenArtifact, name: string): VerifiedFile {
  const file = artifact.files.get(name);
  if (file !== undefined) return file;
  throw new CodedError('image_kind_wrong', `${artifact.id} has no file ${name}`, {
    id: artifact.id,
    action: 'Build it again with this version of firecrew.',
  });
}
