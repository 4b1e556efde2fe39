import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { missionScratch } from './mission-scratch.ts';
import { commitAll, fakeTree, git, personRepository, put } from './scratch.ts';

const { place, repositoryOf } = missionScratch();

describe('the .git of a guest', () => {
  async function unpack(options: { maxBytes?: number; branch?: string; manifest?: ReturnType<typeof fakeTree>['manifest'] }) {
    const source = place.path('source');
    personRepository(source, { 'a.txt': '1\n', 'left.txt': 'out\n' });
    for (let at = 0; at < 60; at += 1) {
      put(source, 'a.txt', `${at}\n`);
      commitAll(source, `c${at}`);
    }
    git(source, ['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},mod`]);
    git(source, ['commit', '-q', '-m', 'submodule']);
    const { repository, base } = await repositoryOf(source);
    const made = await repository.makeGuestGit(base, place.path('guest.tar'), { ...options, compression: 'none' });
    const guest = place.path('guest');
    mkdirSync(`${guest}/.git`, { recursive: true });
    execFileSync('tar', ['-xf', place.path('guest.tar'), '-C', `${guest}/.git`]);
    put(guest, 'a.txt', '59\n');
    return { made, guest, base, repository };
  }

  it('shows a clean tree on a branch with the whole history', async () => {
    const { made, guest, base } = await unpack({ branch: 'trunk', manifest: fakeTree([['a.txt', '59\n']]).manifest });
    expect(made).toMatchObject({ history: 'full', branch: 'trunk', absentPaths: 1 });
    expect(git(guest, ['status', '--porcelain'])).toBe('');
    expect(git(guest, ['symbolic-ref', 'HEAD'])).toBe('refs/heads/trunk');
    expect(git(guest, ['rev-parse', 'HEAD'])).toBe(base);
    expect(git(guest, ['rev-list', '--count', 'HEAD'])).toBe('62');
    expect(git(guest, ['remote'])).toBe('');
    expect(git(guest, ['fsck', '--strict'])).toBe('');
    expect(existsSync(`${guest}/.git/hooks`)).toBe(false);
    expect(readFileSync(`${guest}/.git/config`, 'utf8')).toBe('[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n');
    put(guest, 'a.txt', 'work\n');
    expect(git(guest, ['status', '--porcelain'])).toBe('M a.txt');
    commitAll(guest, 'the guest can commit');
  });

  it('holds the last fifty commits when the history is too large', async () => {
    const { made, guest } = await unpack({ maxBytes: 0, branch: '../evil' });
    expect(made).toMatchObject({ history: 'depth', branch: 'main' });
    expect(git(guest, ['rev-list', '--count', 'HEAD'])).toBe('50');
    expect(git(guest, ['fsck'])).toBe('');
  });

  it('is written compressed by default', async () => {
    personRepository(place.path('source'), { a: '1' });
    const { repository, base } = await repositoryOf(place.path('source'));
    const { bytes } = await repository.makeGuestGit(base, place.path('guest.tar.zst'));
    const written = readFileSync(place.path('guest.tar.zst'));
    expect(written).toHaveLength(bytes);
    expect(written.readUInt32LE(0)).toBe(0xfd2fb528);
  });
});
