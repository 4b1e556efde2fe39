import { copyFile, mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { LocalRepository } from './inspect-repository.ts';
import type { GitOptions } from './run-git.ts';
import { withScratchFolder } from './scratch-folder.ts';

/** A git folder of ours that reads a person's objects, index and working tree, and has none of their configuration. */
export type ShadowPlace = Required<Pick<GitOptions, 'gitDir' | 'workTree' | 'indexFile' | 'objectDirectory' | 'config'>>;

/**
 * Runs `work` with a throw-away git folder in place of the repository's own. Which filter or driver a path names is up to the tree, so no list of
 * overrides could cover them all: here none is configured, and nothing of a person's repository is run or written.
 */
export async function withShadow<T>(repository: LocalRepository, work: (place: ShadowPlace) => Promise<T>): Promise<T> {
  return await withScratchFolder(async (gitDir) => {
    await fill(gitDir, repository);
    const { root: workTree, objectDirectory, settings } = repository;
    return await work({ gitDir, workTree, indexFile: join(gitDir, 'index'), objectDirectory, config: settings.config });
  });
}

async function fill(gitDir: string, repository: LocalRepository): Promise<void> {
  await mkdir(join(gitDir, 'objects'));
  await mkdir(join(gitDir, 'refs'));
  await mkdir(join(gitDir, 'info'));
  await writeFile(join(gitDir, 'HEAD'), `${repository.head}\n`);
  const sha256 = repository.objectFormat === 'sha256';
  const core = `[core]\n\trepositoryformatversion = ${sha256 ? 1 : 0}\n\tbare = false\n`;
  await writeFile(join(gitDir, 'config'), sha256 ? `${core}[extensions]\n\tobjectFormat = sha256\n` : core);
  for (const name of ['info/exclude', 'info/attributes', 'shallow'])
    await copyPresent(join(repository.commonDir, name), join(gitDir, name));
  await copyPresent(join(repository.gitDir, 'info/sparse-checkout'), join(gitDir, 'info/sparse-checkout'));
  for (const name of await readdir(repository.gitDir)) {
    if (name === 'index' || /^sharedindex\.[0-9a-f]+$/.test(name)) await copyIndex(join(repository.gitDir, name), join(gitDir, name));
  }
}

async function copyPresent(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** Git reads a file again when it is not older than the index, so the copy must not look younger than the original. */
async function copyIndex(from: string, to: string): Promise<void> {
  const { mtimeMs } = await stat(from);
  await copyFile(from, to);
  const seconds = Math.floor(mtimeMs / 1000);
  await utimes(to, seconds, seconds);
}
