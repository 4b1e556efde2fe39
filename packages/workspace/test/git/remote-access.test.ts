import { describe, expect, it } from 'vitest';
import { MissionRepository, runGit } from '../../src/git/index.ts';
import { serverAccess } from '../../src/git/remote-access.ts';
import { missionScratch, text } from './mission-scratch.ts';
import { commitAll, git, personRepository, put } from './scratch.ts';

const { place, repositoryOf, importOver } = missionScratch();

describe('the remote of a mission', () => {
  it('is fetched at its default branch, with what matters about it', async () => {
    const source = place.path('source');
    personRepository(source, { 'a/.gitattributes': '*.bin filter=lfs diff=lfs\n' });
    const { repository } = await repositoryOf(source);
    const fetched = await repository.fetch({ remoteUrl: source, allowLocalPath: true });
    expect(fetched).toMatchObject({ branch: 'trunk', lfs: true, shallow: false, submodules: [] });
  });

  it('is refused or reported by name', async () => {
    const source = place.path('source');
    personRepository(source, { a: '1' });
    commitAll(source, 'two');
    git(place.dir, ['clone', '-q', '--depth=1', `file://${source}`, 'shallow']);
    git(place.dir, ['init', '-q', '--bare', 'empty.git']);
    const repository = await MissionRepository.init(place.path('mission.git'));
    const fetch = (remoteUrl: string, branch?: string) =>
      repository.fetch({ remoteUrl, allowLocalPath: true, ...(branch === undefined ? {} : { branch }) });
    await expect(repository.fetch({ remoteUrl: source })).rejects.toMatchObject({ code: 'remote_refused' });
    await expect(fetch('ext::sh -c id')).rejects.toMatchObject({ code: 'remote_refused' });
    await expect(fetch(place.path('absent'))).rejects.toMatchObject({ code: 'remote_unreadable' });
    await expect(fetch(place.path('empty.git'))).rejects.toMatchObject({ code: 'remote_empty' });
    await expect(fetch(source, 'absent')).rejects.toMatchObject({ code: 'remote_branch_missing' });
    await expect(fetch(source, '--upload-pack=x')).rejects.toMatchObject({ code: 'remote_branch_missing' });
    await expect(fetch(place.path('shallow'))).rejects.toMatchObject({ code: 'remote_shallow' });
  });

  it('gets one branch, however often the push is repeated', async () => {
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const { repository, base, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    const push = { remoteUrl: place.path('remote.git'), allowLocalPath: true, branch: 'firecrew/x-12345678' };
    expect(await repository.push({ ...push, commit: base })).toMatchObject({
      verdict: 'pushed',
      branch: push.branch,
      reason: 'new_branch',
    });
    expect(await repository.push({ ...push, commit: done.commit })).toMatchObject({
      verdict: 'pushed',
      reason: 'fast_forward',
      redirected: false,
    });
    expect(await repository.push({ ...push, commit: done.commit })).toMatchObject({ verdict: 'up_to_date', reason: 'already_there' });
    expect(git(place.path('remote.git'), ['for-each-ref', '--format=%(refname) %(objectname)'])).toBe(
      `refs/heads/${push.branch} ${done.commit}`,
    );
  });

  it('gets a suffixed branch when histories diverged, and the first one stays', async () => {
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    const other = personRepository(place.path('unrelated'), { z: 'z' });
    git(place.path('unrelated'), ['push', '-q', place.path('remote.git'), 'trunk:refs/heads/firecrew/x']);
    const push = { remoteUrl: place.path('remote.git'), allowLocalPath: true, branch: 'firecrew/x', commit: done.commit };
    const suffixed = `firecrew/x-${done.commit.slice(0, 8)}`;
    expect(await repository.push(push)).toMatchObject({ verdict: 'pushed', branch: suffixed, redirected: true });
    expect(await repository.push(push)).toMatchObject({ verdict: 'up_to_date', branch: suffixed, redirected: true });
    expect(git(place.path('remote.git'), ['rev-parse', 'firecrew/x', suffixed])).toBe(`${other}\n${done.commit}`);
  });

  it('is quoted when its hook declines, and nothing is tried elsewhere', async () => {
    const remote = place.path('remote.git');
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    put(`${remote}/hooks`, 'pre-receive', '#!/bin/sh\necho "policy: no [rejected] (fetch first) here" >&2\nexit 1\n', 0o755);
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    const outcome = await repository.push({ remoteUrl: remote, allowLocalPath: true, branch: 'firecrew/x', commit: done.commit });
    expect(outcome).toMatchObject({
      verdict: 'refused',
      reason: 'remote_rejected',
      branch: 'firecrew/x',
      redirected: false,
      detail: '[remote rejected] (pre-receive hook declined)',
    });
    expect(outcome.remoteText).toContain('policy: no [rejected] (fetch first) here');
    expect(git(remote, ['for-each-ref'])).toBe('');
  });

  it('is refused by name when a branch stands where a folder is needed, and unreadable when it is gone', async () => {
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    git(place.path('source'), ['push', '-q', place.path('remote.git'), 'trunk:refs/heads/firecrew']);
    const push = { allowLocalPath: true, branch: 'firecrew/x', commit: done.commit };
    expect(await repository.push({ ...push, remoteUrl: place.path('remote.git') })).toMatchObject({
      verdict: 'refused',
      reason: 'remote_rejected',
    });
    expect(await repository.push({ ...push, remoteUrl: place.path('absent.git') })).toMatchObject({
      verdict: 'unreadable',
      reason: 'remote_unreadable',
    });
  });
});

describe('a login for a remote', () => {
  const ask = async (remoteUrl: string, host: string) => {
    const { access } = serverAccess({ remoteUrl, credential: { username: 'x-token', password: 'p%40 "$(id)' } });
    const input = Buffer.from(`protocol=https\nhost=${host}\n\n`);
    const { stdout } = await runGit(['credential', 'fill'], {
      ...access,
      input,
      cwd: place.dir,
      timeoutMs: 30_000,
      maxOutputBytes: 4096,
      exitCodes: [0, 128],
    });
    return { answer: text(stdout), access };
  };

  it('reaches git for its own host alone, and stands in no argument', async () => {
    const { answer, access } = await ask('https://forge.example/a', 'forge.example');
    expect(answer).toContain('username=x-token\npassword=p%40 "$(id)\n');
    expect(JSON.stringify(access.config)).not.toContain('p%40');
    expect((await ask('https://forge.example/a', 'evil.example')).answer).not.toContain('p%40');
    expect((await ask('https://forge.example:8443/a', 'forge.example')).answer).not.toContain('p%40');
  });

  it('is refused when it would add lines of its own', () => {
    const login = () => serverAccess({ remoteUrl: 'https://forge.example/a', credential: { username: 'a', password: 'b\nhost=evil' } });
    expect(login).toThrow(expect.objectContaining({ code: 'remote_credential_malformed' }));
  });
});
