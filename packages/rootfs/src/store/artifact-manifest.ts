import { createHash } from 'node:crypto';
import { CodedError } from '@firecrew/base';
import * as z from 'zod';

/** Bytes of a manifest. */
export const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Files of one artifact: a kernel with all the modules a guest may need. */
export const MAX_ARTIFACT_FILES = 256;

const MAX_TEXT = 4_096;
const text = z.string().max(MAX_TEXT);

/** The id of an artifact: the SHA-256 of its manifest, which holds the SHA-256 of every file. */
export const artifactIdSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** The id of an artifact. */
export type ArtifactDigest = z.infer<typeof artifactIdSchema>;

/** Names of files inside an artifact: plain components, at most one folder. */
const fileNameSchema = z.string().regex(/^([A-Za-z0-9_][A-Za-z0-9._-]{0,99}\/)?[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);

const fileSchema = z.strictObject({
  name: fileNameSchema,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** In bytes. */
  sizeBytes: z.int().nonnegative(),
});

/** One file of an artifact. */
export type ArtifactFile = z.infer<typeof fileSchema>;

const common = {
  /** Version of this shape. */
  manifest: z.literal(1),
  architecture: z.enum(['amd64', 'arm64']),
  files: z.array(fileSchema).min(1).max(MAX_ARTIFACT_FILES),
};

const sourceSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('directory') }),
  z.strictObject({ kind: z.literal('oci-layout'), reference: text.nullable(), digest: text }),
  z.strictObject({ kind: z.literal('docker-archive'), reference: text.nullable(), digest: text }),
  z.strictObject({ kind: z.literal('suite'), suite: text, packages: z.array(text).max(MAX_TEXT) }),
]);

/** Where the content of an image comes from. */
export type ManifestSource = z.infer<typeof sourceSchema>;

/** A root file system: one squashfs file, {@link ROOT_FILE}. */
export const imageManifestSchema = z.strictObject({
  ...common,
  kind: z.literal('image'),
  format: z.literal('squashfs'),
  source: sourceSchema,
  /** Packages of npm that were laid over the source, as `name@version integrity`. */
  npm: z.array(text).max(MAX_TEXT),
  /** Environment that the image wants for commands. */
  environment: z.record(z.string().max(MAX_TEXT), z.string().max(128 * 1024)),
  /** Account that the image wants for commands, as it writes it; empty for root. */
  user: text,
  workingDirectory: text,
  /** Names in the file system, the root included. */
  entryCount: z.int().positive(),
  /** Whether files have the times of the source, or all the same one (`seconds` since 1970). */
  times: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('kept') }),
    z.strictObject({ kind: z.literal('fixed'), seconds: z.int().nonnegative() }),
  ]),
});

const moduleSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9_]{1,100}$/),
  /** Its file in the artifact. */
  file: fileNameSchema,
});

/** A kernel for both drivers, with the modules a guest needs, each after the ones it needs. */
export const kernelManifestSchema = z.strictObject({
  ...common,
  kind: z.literal('kernel'),
  /** As `uname -r` says it in the guest. */
  version: text,
  modules: z.array(moduleSchema).max(MAX_ARTIFACT_FILES),
  /** Wanted modules that are part of the kernel itself. */
  builtIn: z.array(text).max(MAX_TEXT),
  /** Wanted modules that this kernel does not have. */
  missing: z.array(text).max(MAX_TEXT),
});

/** The guest's own programs: one squashfs file, {@link PAYLOAD_FILE}. */
export const payloadManifestSchema = z.strictObject({
  ...common,
  kind: z.literal('payload'),
  format: z.literal('squashfs'),
  /** Folder of the guest that it is to be mounted at: its programs name it. */
  mountPoint: text,
  nodeVersion: text,
  /** Bytes of its files before they were packed. */
  unpackedBytes: z.int().positive(),
});

/** What an artifact of the store says about itself. */
export const artifactManifestSchema = z.discriminatedUnion('kind', [imageManifestSchema, kernelManifestSchema, payloadManifestSchema]);

export type ArtifactManifest = z.infer<typeof artifactManifestSchema>;
export type ImageManifest = z.infer<typeof imageManifestSchema>;
export type KernelManifest = z.infer<typeof kernelManifestSchema>;
export type PayloadManifest = z.infer<typeof payloadManifestSchema>;
export type ArtifactKind = ArtifactManifest['kind'];

/** What a builder says of an artifact; the store adds the list of files. */
export type ArtifactFacts = DistributiveOmit<ArtifactManifest, 'files' | 'manifest'>;
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** The bytes of a manifest and its id; the same facts and files always give the same ones. */
export function encodeManifest(manifest: ArtifactManifest): { readonly bytes: Buffer; readonly id: ArtifactDigest } {
  // The schema puts the keys in its own order.
  const parsed = artifactManifestSchema.parse(sorted(manifest));
  const bytes = Buffer.from(`${JSON.stringify(parsed)}\n`);
  return { bytes, id: manifestId(bytes) };
}

/** The id of an artifact with a manifest of these bytes. */
export function manifestId(bytes: Uint8Array): ArtifactDigest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Reads a manifest. Throws `manifest_malformed`. */
export function parseManifest(bytes: Uint8Array): ArtifactManifest {
  let value: unknown;
  try {
    value = bytes.length > MAX_MANIFEST_BYTES ? undefined : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    value = undefined;
  }
  const parsed = artifactManifestSchema.safeParse(value);
  const names = parsed.data?.files.map(({ name }) => name) ?? [];
  if (parsed.success && new Set(names).size === names.length && !names.includes('manifest.json')) return parsed.data;
  throw new CodedError('manifest_malformed', 'the manifest of the artifact is not one that this version writes', {
    action: 'Build the artifact again, or use the version of firecrew that made it.',
  });
}

function sorted(manifest: ArtifactManifest): ArtifactManifest {
  const files = [...manifest.files].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (manifest.kind !== 'image') return { ...manifest, files };
  const environment = Object.fromEntries(Object.entries(manifest.environment).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { ...manifest, files, environment };
}
