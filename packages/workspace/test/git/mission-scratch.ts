import { afterEach, beforeEach } from 'vitest';
import { MissionRepository } from '../../src/git/index.ts';
import { type FakeEntry, fakeTree, git, PLAN, personRepository, type Scratch, scratch } from './scratch.ts';

export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

/** A folder for each test of a file, and repositories of missions in it. */
export function missionScratch() {
  let current: Scratch;
  beforeEach(() => {
    current = scratch();
  });
  afterEach(() => current.remove());
  const place: Pick<Scratch, 'dir' | 'path'> = {
    get dir() {
      return current.dir;
    },
    path: (...parts) => current.path(...parts),
  };

  /** The repository of a mission on a branch of `source`. */
  async function repositoryOf(source: string, branch = 'trunk'): Promise<{ repository: MissionRepository; base: string }> {
    const repository = await MissionRepository.init(place.path('mission.git'));
    const { commit } = await repository.fetch({ remoteUrl: `file://${source}`, allowLocalPath: true, branch });
    return { repository, base: commit };
  }

  /** Imports the tree `after` over a commit of `files`, whose checkout was `before`; `names` are modes and paths of the new commit. */
  async function importOver(files: Record<string, string>, before: readonly FakeEntry[], after: readonly FakeEntry[]) {
    personRepository(place.path('source'), files);
    const { repository, base } = await repositoryOf(place.path('source'));
    const tree = fakeTree(after);
    const done = await repository.importSnapshot({
      baseCommit: base,
      baseManifest: fakeTree(before).manifest,
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    const listing = git(repository.dir, ['ls-tree', '-r', '-z', done.commit])
      .split('\0')
      .filter((line) => line !== '');
    const names = listing.map((line) => line.replace(/^(\d+) \w+ \w+\t/, '$1 '));
    return { repository, base, done, names };
  }

  return { place, repositoryOf, importOver };
}
