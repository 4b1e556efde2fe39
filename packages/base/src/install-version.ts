import { createHash, type Hash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { access, chmod, copyFile, link, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const WRITABLE_BY_OTHERS = 0o022;
const RUNNABLE_BY_OTHERS = 0o055;
/** Characters of the SHA-256 that name a version. */
const DIGEST_LENGTH = 16;

/** The programs of one version: processes run from its folder, so an upgrade never removes code under one that lives. */
export interface InstalledVersion {
  readonly digest: string;
  readonly folder: string;
}

/**
 * Puts files and folders, by the name each gets, into `versions/<digest>/` (0755) unless they are there. The folder appears as a whole.
 * A link to a source is made only where nobody but this account can change it; else it is copied.
 */
export async function installVersion(versions: string, sources: Readonly<Record<string, string>>): Promise<InstalledVersion> {
  await mkdir(versions, { recursive: true, mode: 0o755 });
  await chmod(versions, 0o755);
  const names = Object.keys(sources).sort();
  const hash = createHash('sha256');
  for (const name of names) await digestInto(hash, name, sources[name] ?? '');
  const digest = hash.digest('hex').slice(0, DIGEST_LENGTH);
  const folder = join(versions, digest);
  if (await exists(folder)) return { digest, folder };
  const staging = await mkdtemp(join(versions, '_staging-'));
  try {
    for (const name of names) await place(sources[name] ?? '', join(staging, name));
    await chmod(staging, 0o755);
    await rename(staging, folder);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    // Another process of this home was faster: the same digest is the same programs.
    if (!(await exists(folder))) throw error;
  }
  return { digest, folder };
}

/** Removes every version but `keep`. Only for versions that nothing can run from any more. */
export async function removeOldVersions(versions: string, keep: string): Promise<void> {
  for (const name of await readdir(versions)) if (name !== keep) await rm(join(versions, name), { recursive: true, force: true });
}

async function place(source: string, target: string): Promise<void> {
  if ((await stat(source)).isDirectory()) {
    await mkdir(target);
    await chmod(target, 0o755);
    for (const name of await readdir(source)) await place(join(source, name), join(target, name));
    return;
  }
  const linked = (await mayLink(source)) && (await link(source, target).then(constantTrue, constantFalse));
  if (linked) return;
  // Another file system, or a source that others may change or not run.
  await copyFile(source, target, constants.COPYFILE_FICLONE);
  await chmod(target, 0o755);
}

/** As root other accounts run what lies there, and none of them may own it. */
async function mayLink(source: string): Promise<boolean> {
  if (process.getuid?.() !== 0) return true;
  const { uid, mode } = await stat(source);
  return uid === 0 && (mode & WRITABLE_BY_OTHERS) === 0 && (mode & RUNNABLE_BY_OTHERS) === RUNNABLE_BY_OTHERS;
}

async function digestInto(hash: Hash, name: string, source: string): Promise<void> {
  const stats = await stat(source);
  if (stats.isDirectory()) {
    const inside = (await readdir(source)).sort();
    hash.update(`${name}\0folder\0${inside.length}\0`);
    for (const one of inside) await digestInto(hash, one, join(source, one));
    return;
  }
  hash.update(`${name}\0file\0${stats.size}\0`);
  for await (const part of createReadStream(source)) hash.update(part as Buffer);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(constantTrue, constantFalse);
}

const constantTrue = (): boolean => true;
const constantFalse = (): boolean => false;
