import { type ArtifactDigest, ArtifactNames, ImageStore, type StoredArtifact } from '@firecrew/rootfs';
import { type CommandContext, homeOf } from '../commands/context.ts';

/** The images of a home, with their names. */
export interface HomeImages {
  readonly store: ImageStore;
  readonly names: ArtifactNames;
}

/** The images of this call's home. */
export function imagesOf(context: CommandContext): HomeImages {
  const { images } = homeOf(context).paths;
  return { store: new ImageStore(images), names: new ArtifactNames(images) };
}

/** The artifact of a name, an id, or the end of an id. Throws `image_unknown`, `image_ambiguous_id`, `image_digest_wrong`. */
export async function findArtifact({ store, names }: HomeImages, wanted: string): Promise<StoredArtifact> {
  return await store.find((await names.get(wanted)) ?? wanted);
}

/** The same where its manifest may be damaged: its id alone. Throws `image_unknown`, `image_ambiguous_id`. */
export async function findArtifactId({ store, names }: HomeImages, wanted: string): Promise<ArtifactDigest> {
  const named = await names.get(wanted);
  if (named !== undefined) return named;
  const { damaged } = await store.list();
  const tail = wanted.replace(/^sha256:/, '');
  const [only, ...others] = damaged.filter(({ id }) => tail.length >= 3 && id.endsWith(tail));
  return only !== undefined && others.length === 0 ? only.id : (await store.find(wanted)).id;
}
