// What a clone with a cut history sends, with and without what it lacks.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  inspectRepository,
  type LocalRepository,
  MissionRepository,
  packHead,
  packWholeHistory,
  pushBranch,
  writeBranch,
} from '../../src/git/index.ts';
import { commitAll, fakeTree, git, PERSON, PLAN, personRepository, put, type Scratch, scratch } from './scratch.ts';

let place: Scratch;
beforeEach(() => {
  place = scratch();
});
afterEach(() => place.remove());

const inspect = (): Promise<LocalRepository> => inspectRepository(place.path('source'), PERSON);

/** A clone of the last two of five commits of `origin`, which is named. */
function shallowClone(): string {
  const origin = place.path('origin');
  personRepository(origin, { a: '0' });
  for (let at = 1; at < 5; at += 1) {
    put(origin, 'a', `${at}`);
    commitAll(origin, `c${at}`);
  }
  git(place.dir, ['clone', '-q', '--depth=2', `file://${origin}`, 'source']);
  return origin;
}

describe('a shallow source whose history is wanted', () => {
  const filesOf = (): string =>
    git(place.path('source/.git'), ['--git-dir=.', 'for-each-ref']) + readFileSync(place.path('source/.git/shallow'), 'utf8');

  it('travels whole, with a commit of its own on top, and is left as it is', async () => {
    shallowClone();
    put(place.path('source'), 'b', 'own');
    commitAll(place.path('source'), 'own');
    const before = filesOf();
    const objects = git(place.path('source'), ['count-objects', '-v']);
    const repository = await inspect();
    const packed = await packWholeHistory(repository, place.path('head.pack'), { env: PERSON });
    expect(packed.shallow).toBeUndefined();
    const mission = await MissionRepository.init(place.path('mission.git'));
    await mission.importPack(place.path('head.pack'), { head: packed.commit });
    expect((await mission.describe(packed.commit)).shallow).toBe(false);
    expect(git(place.path('mission.git'), ['rev-list', '--count', packed.commit])).toBe('6');
    expect([filesOf(), git(place.path('source'), ['count-objects', '-v'])]).toEqual([before, objects]);
  });

  it('is refused by name where its remote is gone, is shallow itself, or was never there', async () => {
    const origin = shallowClone();
    const pack = async (): Promise<unknown> => await packWholeHistory(await inspect(), place.path('x.pack'), { env: PERSON });
    git(place.dir, ['clone', '-q', '--depth=2', `file://${origin}`, 'cut']);
    git(place.path('source'), ['remote', 'set-url', 'origin', `file://${place.path('cut')}`]);
    await expect(pack()).rejects.toMatchObject({ code: 'unshallow_failed', id: 'origin' });
    git(place.path('source'), ['remote', 'set-url', 'origin', `file://${place.path('gone')}`]);
    await expect(pack()).rejects.toMatchObject({ code: 'unshallow_failed', action: expect.stringContaining('--unshallow') });
    git(place.path('source'), ['remote', 'remove', 'origin']);
    await expect(pack()).rejects.toMatchObject({ code: 'unshallow_failed' });
  });
});

describe('a shallow source', () => {
  it('carries its shallow file, and its result comes back', async () => {
    shallowClone();
    const repository = await inspect();
    expect(repository.shallow).toBe(true);
    const packed = await packHead(repository, place.path('head.pack'));
    expect(packed.bytes).toBe(statSync(place.path('head.pack')).size);
    const mission = await MissionRepository.init(place.path('mission.git'));
    const without = await MissionRepository.init(place.path('without.git'));
    await expect(without.importPack(place.path('head.pack'), { head: packed.commit })).rejects.toMatchObject({ code: 'pack_incomplete' });
    if (packed.shallow === undefined) throw new Error('no shallow file');
    await mission.importPack(place.path('head.pack'), { head: packed.commit, shallow: packed.shallow });
    expect((await mission.describe(packed.commit)).shallow).toBe(true);
    const tree = fakeTree([['a', 'x']]);
    const { commit } = await mission.importSnapshot({
      baseCommit: packed.commit,
      baseManifest: [],
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    const guest = await mission.makeGuestGit(commit, place.path('guest.tar'), { compression: 'none' });
    expect(guest.history).toBe('full');
    mkdirSync(place.path('guest'));
    execFileSync('tar', ['-xf', place.path('guest.tar'), '-C', place.path('guest')]);
    expect(git(place.path('guest'), ['rev-list', '--count', 'HEAD'])).toBe('3');
    await mission.packFor(commit, { not: [packed.commit] }, place.path('out.pack'));
    expect(await writeBranch(repository, { packFile: place.path('out.pack'), branch: 'firecrew/x', commit })).toMatchObject({
      verdict: 'written',
    });
    expect(await pushBranch(repository, { remote: 'origin', branch: 'firecrew/x', env: PERSON })).toMatchObject({ verdict: 'pushed' });
  });
});
