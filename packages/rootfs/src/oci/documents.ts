import { CodedError } from '@firecrew/base';
import * as z from 'zod';
import { MAX_DOCUMENT_BYTES } from '../limits.ts';

const MAX_TEXT = 4_096;
const MAX_LIST = 4_096;

/** A digest of the image specification; the algorithms are those it registers. */
export const digestSchema = z.string().regex(/^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/);

const platformSchema = z.object({
  os: z.string().max(MAX_TEXT),
  architecture: z.string().max(MAX_TEXT),
  variant: z.string().max(MAX_TEXT).optional(),
});

const descriptorSchema = z.object({
  mediaType: z.string().max(MAX_TEXT),
  digest: digestSchema,
  size: z.int().nonnegative(),
  platform: platformSchema.optional(),
  annotations: z.record(z.string().max(MAX_TEXT), z.string().max(MAX_TEXT)).optional(),
});

/** A reference to a blob by digest and size. */
export type Descriptor = z.infer<typeof descriptorSchema>;

export const layoutSchema = z.object({ imageLayoutVersion: z.literal('1.0.0') });
export const indexSchema = z.object({ schemaVersion: z.literal(2), manifests: z.array(descriptorSchema).max(MAX_LIST) });
export const manifestSchema = z.object({
  schemaVersion: z.literal(2),
  config: descriptorSchema,
  layers: z.array(descriptorSchema).max(MAX_LIST),
});

export const configSchema = z.object({
  os: z.string().max(MAX_TEXT),
  architecture: z.string().max(MAX_TEXT),
  config: z
    .object({
      Env: z
        .array(z.string().max(128 * 1024))
        .max(MAX_LIST)
        .nullish(),
      User: z.string().max(MAX_TEXT).nullish(),
      WorkingDir: z.string().max(MAX_TEXT).nullish(),
    })
    .nullish(),
  rootfs: z.object({ type: z.literal('layers'), diff_ids: z.array(digestSchema).max(MAX_LIST) }),
});

/** What an image says about itself and how it wants to be run. */
export type ImageConfig = z.infer<typeof configSchema>;

/** The list of images in the archive that `docker save` writes. */
export const savedSchema = z
  .array(
    z.object({
      Config: z.string().min(1).max(MAX_TEXT),
      RepoTags: z.array(z.string().max(MAX_TEXT)).max(MAX_LIST).nullish(),
      Layers: z.array(z.string().min(1).max(MAX_TEXT)).max(MAX_LIST),
    }),
  )
  .max(MAX_LIST);

export type SavedImage = z.infer<typeof savedSchema>[number];

/** Parses a JSON document of an untrusted image. Throws `image_malformed`. */
export function parseDocument<T>(bytes: Buffer, schema: z.ZodType<T>, name: string): T {
  if (bytes.length > MAX_DOCUMENT_BYTES) throw malformedImage(`${name} has ${bytes.length} bytes; ${MAX_DOCUMENT_BYTES} are allowed`);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw malformedImage(`${name} is no JSON`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const first = parsed.error.issues[0];
  throw malformedImage(`${name}: ${first?.path.join('.') ?? ''}: ${first?.message ?? 'it is of another shape'}`);
}

/** The documents of the image contradict themselves or the specification. */
export function malformedImage(what: string): CodedError {
  return new CodedError('image_malformed', `the image is not well-formed: ${what}`, {
    action: 'Write it anew, as an OCI layout or with docker save.',
  });
}
