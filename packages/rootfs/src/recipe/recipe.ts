import { CodedError } from '@firecrew/base';
import * as z from 'zod';
import type { NpmPackage } from '../image/npm-packages.ts';

/** Bytes of a recipe. */
export const MAX_RECIPE_BYTES = 64 * 1024;

const text = z.string().max(4_096);
const imagePath = z
  .string()
  .regex(/^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9_.@-]+)+$/)
  .max(4_096);

const baseSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('suite'), suite: text, packages: z.array(text).max(1_000) }),
  z.strictObject({ kind: z.literal('oci-layout'), path: text, reference: text.optional() }),
  z.strictObject({ kind: z.literal('docker-archive'), path: text, reference: text.optional() }),
]);

const recipeSchema = z.strictObject({
  /** Version of this shape. */
  recipe: z.literal(1),
  /** What it is for, one sentence. */
  summary: text,
  /** What lies below. Paths are relative to the recipe. */
  base: baseSchema,
  /** Packages of npm by processor: the one for the processor of the image is laid into it as it is. */
  npm: z.array(z.strictObject({ amd64: text.optional(), arm64: text.optional(), into: imagePath })).max(100),
  /** Links of the image, path to target; the target may differ by processor. */
  links: z.record(imagePath, z.union([text, z.strictObject({ amd64: text, arm64: text })])),
  environment: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), text),
});

/** What an image is made of, as data. */
export type Recipe = z.infer<typeof recipeSchema>;

/** Reads a recipe. Throws `recipe_malformed`. */
export function parseRecipe(bytes: Uint8Array): Recipe {
  let value: unknown;
  try {
    if (bytes.length > MAX_RECIPE_BYTES) throw new Error('it is too large');
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw malformed(`it is no JSON of at most ${MAX_RECIPE_BYTES} bytes`);
  }
  const parsed = recipeSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const first = parsed.error.issues[0];
  throw malformed(`${first?.path.join('.') || 'it'}: ${first?.message ?? 'of another shape'}`);
}

/** The packages of a recipe for one processor. Throws `recipe_malformed` where it has none for it. */
export function npmPackagesOf(recipe: Recipe, architecture: 'amd64' | 'arm64'): readonly NpmPackage[] {
  return recipe.npm.map((entry) => {
    const spec = entry[architecture];
    if (spec === undefined) throw malformed(`it has no package for ${architecture} that goes into ${entry.into}`);
    return { spec, into: entry.into };
  });
}

/** The links of a recipe for one processor. */
export function linksOf(recipe: Recipe, architecture: 'amd64' | 'arm64'): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(recipe.links).map(([path, target]) => [path, typeof target === 'string' ? target : target[architecture]]),
  );
}

function malformed(what: string): CodedError {
  return new CodedError('recipe_malformed', `the recipe cannot be used: ${what}`, {
    action: 'Compare it with the recipes in examples/images.',
  });
}
