import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { access, chmod, copyFile, link, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** The programs of one version: shims run from it, so an upgrade never removes code under one that lives. */
export interface InstalledVersion {
  readonly digest: string;
  readonly node: string;
  readonly shim: string;
  readonly guestAgent: string;
}

/** Where the programs come from. */
export interface VersionSources {
  readonly node: string;
  readonly shim: string;
  readonly guestAgent: string;
}

/** Puts the programs into `versions/<digest>/` unless they are there. The folder appears as a whole. */
export async function installVersion(versions: string, sources: VersionSources): Promise<InstalledVersion> {
  await mkdir(versions, { recursive: true, mode: 0o755 });
  await chmod(versions, 0o755);
  const digest = (await digestOf([sources.shim, sources.guestAgent, sources.node])).slice(0, 16);
  const folder = join(versions, digest);
  const version = { digest, node: join(folder, 'node'), shim: join(folder, 'shim.mjs'), guestAgent: join(folder, 'guest-agent.mjs') };
  if (await exists(version.node)) return version;
  const staging = await mkdtemp(join(versions, '_staging-'));
  await copyFile(sources.shim, join(staging, 'shim.mjs'));
  await copyFile(sources.guestAgent, join(staging, 'guest-agent.mjs'));
  await linkOrCopy(sources.node, join(staging, 'node'));
  await chmod(staging, 0o755);
  await rename(staging, folder).catch(async (error: unknown) => {
    await rm(staging, { recursive: true, force: true });
    // Another agent of this home was faster: the same digest is the same programs.
    if (!(await exists(version.node))) throw error;
  });
  return version;
}

/** Removes versions that nothing can run from any more: all but `keep`, where no turn folder is left. */
export async function removeOldVersions(versions: string, keep: string): Promise<void> {
  for (const name of await readdir(versions)) if (name !== keep) await rm(join(versions, name), { recursive: true, force: true });
}

async function linkOrCopy(source: string, target: string): Promise<void> {
  try {
    await link(source, target);
  } catch {
    // Another file system, or links to foreign files are not allowed.
    await copyFile(source, target, constants.COPYFILE_FICLONE);
  }
}

async function digestOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files) for await (const part of createReadStream(file)) hash.update(part as Buffer);
  return hash.digest('hex');
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
