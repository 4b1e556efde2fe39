import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import { type ArtifactDigest, artifactIdSchema } from './artifact-manifest.ts';
import { storeFailed } from './store-errors.ts';

const NAME = /^[a-z][a-z0-9._-]{0,62}$/;
/** What is only digits of a digest is taken for the end of an id. */
const LIKE_AN_ID = /^[0-9a-f]+$/;

/** Names that people give to artifacts of a store; each leads to one id, and changing that is one step. */
export class ArtifactNames {
  readonly #folder: string;

  constructor(root: string) {
    this.#folder = join(root, 'names');
  }

  /** Gives a name to an artifact; it is taken from the one that had it. Throws `image_name_wrong`, `image_store_failed`. */
  async set(name: string, id: ArtifactDigest): Promise<void> {
    checkArtifactName(name);
    const temporary = join(this.#folder, `.${name}.${randomBytes(6).toString('hex')}`);
    try {
      await mkdir(this.#folder, { recursive: true });
      // Whatever the mask of this process: the server reads names of a store that is not its own.
      await chmod(this.#folder, 0o755);
      const handle = await open(temporary, 'wx', 0o644);
      try {
        await handle.chmod(0o644);
        await handle.writeFile(`${id}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, join(this.#folder, name));
    } catch (cause) {
      await rm(temporary, { force: true });
      throw storeFailed(`the name ${name} cannot be given`, name, cause);
    }
  }

  /** The id of a name; undefined where nothing has it. Throws `image_store_failed`. */
  async get(name: string): Promise<ArtifactDigest | undefined> {
    if (!isArtifactName(name)) return undefined;
    try {
      const { data } = artifactIdSchema.safeParse((await readFile(join(this.#folder, name), 'utf8')).trim());
      if (data !== undefined) return data;
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') return undefined;
      throw storeFailed(`the name ${name} cannot be read`, name, cause);
    }
    throw storeFailed(`the name ${name} cannot be read`, name, new Error('its file holds no id'));
  }

  /** Every name with its id, sorted. Throws `image_store_failed`. */
  async list(): Promise<ReadonlyMap<string, ArtifactDigest>> {
    let files: string[];
    try {
      files = await readdir(this.#folder);
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') return new Map();
      throw storeFailed(`the names in ${this.#folder} cannot be read`, this.#folder, cause);
    }
    const found = new Map<string, ArtifactDigest>();
    for (const name of files.sort()) {
      const id = await this.get(name);
      if (id !== undefined) found.set(name, id);
    }
    return found;
  }

  /** Takes a name away; its artifact stays. */
  async remove(name: string): Promise<void> {
    checkArtifactName(name);
    await rm(join(this.#folder, name), { force: true });
  }
}

/** Whether something can be the name of an artifact. */
export function isArtifactName(name: string): boolean {
  return NAME.test(name) && !LIKE_AN_ID.test(name);
}

/** Throws `image_name_wrong` for what cannot be the name of an artifact. */
export function checkArtifactName(name: string): void {
  if (isArtifactName(name)) return;
  throw new CodedError('image_name_wrong', `${JSON.stringify(name)} cannot be the name of an image`, {
    id: name,
    action: 'Use small letters, digits, dots and hyphens, a letter first, and not only digits of a digest.',
  });
}
