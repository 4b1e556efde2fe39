import { CodedError, codeOf } from '@firecrew/base';
import { ROOT_FILE } from '../image/build-image.ts';
import { BZIMAGE_FILE, INITRD_FILE, VMLINUX_FILE } from '../kernel/extract-kernel.ts';
import { PAYLOAD_FILE } from '../payload/build-payload.ts';
import { type ArtifactDigest, type ArtifactKind, artifactIdSchema } from './artifact-manifest.ts';
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
  /** The variables that the image declares, without PATH. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** What a host is told to boot from: each a name of its store, or an id. */
export interface BootReferences {
  readonly kernel: string;
  readonly payload: string;
  readonly image: string;
}

/** What a host boots from that is told nothing else. */
export const DEFAULT_REFERENCES: BootReferences = { kernel: KERNEL_NAME, payload: PAYLOAD_NAME, image: DEFAULT_IMAGE_NAME };

/** An artifact that a host is told to boot from and that its store does not hold. */
export interface MissingArtifact {
  readonly kind: ArtifactKind;
  /** As the host was told: a name or an id. */
  readonly reference: string;
  /** What it is by content; null while its name leads nowhere. */
  readonly id: ArtifactDigest | null;
}

const KINDS = ['kernel', 'payload', 'image'] as const;
const MAKE_WITH: Readonly<Record<ArtifactKind, (name: string) => string>> = {
  kernel: () => 'firecrew image kernel --from FILE',
  payload: () => 'firecrew image payload',
  image: (name) => `firecrew image build ${name} --from SOURCE`,
};

/**
 * Which of the artifacts a store holds, by their manifests alone, and which it does not. Throws `image_store_failed`,
 * `image_digest_wrong`, `manifest_malformed`: what cannot be read is not missing.
 */
export async function lookUpBootArtifacts(
  root: string,
  references: BootReferences,
): Promise<{ readonly found: Partial<BootArtifacts>; readonly missing: readonly MissingArtifact[] }> {
  const [store, names] = [new ImageStore(root), new ArtifactNames(root)];
  const found: Partial<Record<ArtifactKind, ArtifactDigest>> = {};
  const missing: MissingArtifact[] = [];
  for (const kind of KINDS) {
    const reference = references[kind];
    const id = artifactIdSchema.safeParse(reference).success ? reference : await names.get(reference);
    if (id !== undefined && (await isHeld(store, id))) found[kind] = id;
    else missing.push({ kind, reference, id: id ?? null });
  }
  return { found, missing };
}

/** The ids of what a VM is made of. Throws `image_unknown` for the first that the store does not hold, with the reference as `id`. */
export async function findBootArtifacts(root: string, references: BootReferences = DEFAULT_REFERENCES): Promise<BootArtifacts> {
  const { found, missing } = await lookUpBootArtifacts(root, references);
  const { kernel, payload, image } = found;
  if (kernel !== undefined && payload !== undefined && image !== undefined) return { kernel, payload, image };
  // cast: what was not found is missing
  const [{ kind, reference, id }] = missing as readonly [MissingArtifact];
  const what =
    id === null ? `nothing named ${reference}` : id === reference ? `no ${kind} ${id}` : `no ${kind} ${id}, which ${reference} is`;
  throw new CodedError('image_unknown', `the store ${root} has ${what}`, {
    id: reference,
    action: id === null ? `Make it: ${MAKE_WITH[kind](reference)}` : 'Bring it here: firecrew image import FILE',
  });
}

async function isHeld(store: ImageStore, id: ArtifactDigest): Promise<boolean> {
  try {
    await store.find(id);
    return true;
  } catch (error) {
    if (codeOf(error) === 'image_unknown') return false;
    throw error;
  }
}

/**
 * Opens what a VM boots from and reads all of it against its digests, so that what is used is what was checked. Throws
 * `kernel_missing`, `image_unknown`, `image_kind_wrong`, `image_digest_wrong`, `image_store_failed`.
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
    const kernel = await open(ids.kernel, 'kernel').catch((error: unknown) => {
      throw codeOf(error) === 'image_unknown' ? kernelMissing(root, ids.kernel, error) : error;
    });
    const payload = await open(ids.payload, 'payload');
    const image = await open(ids.image, 'image');
    const { PATH: path = PLAIN_PATH, ...environment } = image.manifest.kind === 'image' ? image.manifest.environment : {};
    return {
      kernel: fileOf(kernel, BZIMAGE_FILE),
      vmlinux: fileOf(kernel, VMLINUX_FILE),
      initrd: fileOf(kernel, INITRD_FILE),
      base: fileOf(image, ROOT_FILE),
      payload: fileOf(payload, PAYLOAD_FILE),
      path,
      environment,
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

function kernelMissing(root: string, id: ArtifactDigest, cause: unknown): CodedError {
  return new CodedError('kernel_missing', `the store ${root} has lost the kernel ${id}`, {
    id,
    action: `Make it again: ${MAKE_WITH.kernel('')}`,
    cause,
  });
}
