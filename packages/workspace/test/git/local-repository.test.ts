// size: the cases of one port against one kind of fixture, each short
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  inspectRepository,
  type LocalRepository,
  listUploadFiles,
  MissionRepository,
  packHead,
  pushBranch,
  writeBranch,
} from '../../src/git/index.ts';
import { commitAll, type FakeEntry, fakeTree, git, PERSON, PLAN, personRepository, put, type Scratch, scratch } from './scratch.ts';

let place: Scratch;
let source: string;
beforeEach(() => {
  place = scratch();
  source = place.path('source');
});
afterEach(() => place.remove());

const inspect = (path = source): Promise<LocalRepository> => inspectRepository(path, PERSON);
const text = (path: Uint8Array): string => Buffer.from(path).toString('latin1');

/** Everything a repository can be told to run, each of which leaves a mark. */
function plant(repository: string): string {
  const canary = place.path('CANARY');
  const touch = `touch ${canary}`;
  for (const hook of [
    'pre-push',
    'reference-transaction',
    'post-index-change',
    'post-checkout',
    'pre-auto-gc',
    'post-update',
    'pre-commit',
    'fsmonitor-watchman',
  ]) {
    put(`${repository}/.git/hooks`, hook, `#!/bin/sh\n${touch}-${hook}\n`, 0o755);
  }
  put(place.path('hooks'), 'reference-transaction', `#!/bin/sh\n${touch}-hookspath\n`, 0o755);
  const config: Record<string, string> = {
    'core.fsmonitor': `${touch}-fsmonitor; false`,
    'core.hooksPath': place.path('hooks'),
    'core.pager': `${touch}-pager`,
    'core.editor': `${touch}-editor`,
    'core.sshCommand': `${touch}-ssh`,
    'core.askPass': `${place.path('hooks')}/reference-transaction`,
    'core.alternateRefsCommand': `${touch}-alternate`,
    'filter.evil.clean': `${touch}-clean; cat`,
    'filter.evil.smudge': `${touch}-smudge; cat`,
    'filter.evil.process': `${touch}-process`,
    'filter.evil.required': 'true',
    'diff.evil.textconv': `${touch}-textconv`,
    'diff.evil.command': `${touch}-diff`,
    'diff.external': `${touch}-external`,
    'credential.helper': `!${touch}-credential`,
    'gc.auto': '1',
    'alias.status': `!${touch}-alias`,
  };
  for (const [key, value] of Object.entries(config)) git(repository, ['config', key, value]);
  put(repository, '.gitattributes', '* filter=evil diff=evil\n');
  put(`${repository}/.git/info`, 'attributes', '* filter=evil\n');
  return canary;
}

const marks = (): string[] => readdirSync(place.dir).filter((name) => name.startsWith('CANARY'));

describe("a person's repository", () => {
  it('is found from a folder within it', async () => {
    const head = personRepository(source, { 'd/a': '1' });
    expect(await inspect(`${source}/d`)).toMatchObject({
      root: source,
      head,
      branch: 'trunk',
      detached: false,
      shallow: false,
      partial: false,
      objectFormat: 'sha1',
    });
    git(source, ['checkout', '-q', '--detach']);
    expect(await inspect()).toMatchObject({ branch: undefined, detached: true });
  });

  it('is found through a linked working tree', async () => {
    const head = personRepository(source, { a: '1' });
    git(source, ['worktree', 'add', '-q', '-b', 'side', place.path('side')]);
    put(place.path('side'), 'a', '2');
    const side = await inspect(place.path('side'));
    expect(side).toMatchObject({ root: place.path('side'), head, branch: 'side', commonDir: `${source}/.git` });
    expect((await listUploadFiles(side)).synthetic.changed.map(text)).toEqual(['a']);
  });

  it('is refused by name when there is nothing to start from', async () => {
    mkdirSync(source);
    await expect(inspect(place.path('absent'))).rejects.toMatchObject({ code: 'repo_not_found' });
    await expect(inspect()).rejects.toMatchObject({ code: 'repo_not_git' });
    git(source, ['init', '-q']);
    await expect(inspect()).rejects.toMatchObject({ code: 'repo_unborn' });
    await expect(inspect(`${source}/.git`)).rejects.toMatchObject({ code: 'repo_bare' });
    git(place.dir, ['init', '-q', '--bare', 'bare.git']);
    await expect(inspect(place.path('bare.git'))).rejects.toMatchObject({ code: 'repo_bare' });
  });

  it('is read in the SHA-256 format too', async () => {
    mkdirSync(source);
    git(source, ['init', '-q', '--object-format=sha256']);
    put(source, 'a', '1');
    const head = commitAll(source, 'first');
    const repository = await inspect();
    expect(repository).toMatchObject({ objectFormat: 'sha256', head });
    await packHead(repository, place.path('head.pack'));
    const mission = await MissionRepository.init(place.path('mission.git'), { objectFormat: 'sha256' });
    await mission.importPack(place.path('head.pack'), { head });
    const tree = fakeTree([['a', '2']]);
    const done = await mission.importSnapshot({
      baseCommit: head,
      baseManifest: [],
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    await mission.makeGuestGit(done.commit, place.path('guest.tar'));
    expect(git(mission.dir, ['cat-file', 'blob', `${done.commit}:a`])).toBe('2');
  });
});

describe('the files that are sent', () => {
  async function list(choice?: Parameters<typeof listUploadFiles>[1]) {
    const found = await listUploadFiles(await inspect(), choice);
    return { ...found, names: found.files.map((file) => `${file.standing} ${text(file.path)}`) };
  }

  it('are the tracked ones and the untracked ones that are not ignored', async () => {
    personRepository(source, { '.gitignore': '*.log\nout/\n', a: '1', b: '1', gone: '1', 'd/kept': '1' });
    put(source, 'a', '2');
    put(source, 'new', 'n');
    put(source, 'x.log', 'l');
    put(source, 'out/one', 'o');
    put(source, 'out/two', 'o');
    rmSync(`${source}/gone`);
    const found = await list();
    expect(found.names).toEqual(['committed .gitignore', 'changed a', 'committed b', 'committed d/kept', 'untracked new']);
    expect(found.leftOut.map((left) => [text(left.path), left.reason])).toEqual([
      ['out/', 'ignored'],
      ['x.log', 'ignored'],
    ]);
    expect(found.leftOutCounts).toEqual({ ignored: 2, secret_shaped: 0, nested_repository: 0 });
    expect(found.synthetic.changed.map(text)).toEqual(['a', 'new']);
    expect(found.synthetic.removed.map(text)).toEqual(['gone']);
    expect(found.dirtyPaths).toBe(3);
  });

  it('hold ignored ones only when they are named', async () => {
    personRepository(source, { '.gitignore': '*.log\nout/\n.env\n', a: '1' });
    for (const name of ['x.log', 'out/one', 'out/.env', '.env', '[a].log']) put(source, name, 'x');
    expect((await list({ include: ['out', './x.log', '[a].log'] })).names).toEqual([
      'committed .gitignore',
      'ignored [a].log',
      'committed a',
      'ignored out/one',
      'ignored x.log',
    ]);
    const secret = await list({ include: ['out'], includeSecret: ['out/.env', '.env'] });
    expect(secret.names).toEqual(['ignored .env', 'committed .gitignore', 'committed a', 'ignored out/.env', 'ignored out/one']);
    expect(secret.files.filter((file) => file.secret !== undefined).map((file) => text(file.path))).toEqual(['.env', 'out/.env']);
    expect(secret.dirtyPaths).toBe(0);
  });

  it('hold no secret-shaped one that was not asked for, and name those that are committed', async () => {
    personRepository(source, { a: '1', '.npmrc': 'engine-strict=true\n', id_rsa: 'old' });
    put(source, '.env', 'S=1');
    put(source, 'id_rsa', 'new key');
    const found = await list();
    expect(found.names).toEqual(['committed .npmrc', 'committed a']);
    expect(found.files[0]?.secret).toBe('registry_token');
    expect(found.leftOut).toEqual([
      { path: Buffer.from('.env'), reason: 'secret_shaped', secret: 'dotenv' },
      { path: Buffer.from('id_rsa'), reason: 'secret_shaped', secret: 'private_key' },
    ]);
    expect(found.dirtyPaths).toBe(0);
    expect((await list({ includeSecret: ['.env'] })).names).toContain('untracked .env');
  });

  it.each(['../x', '/etc/passwd', '', '.', 'a/../../x'])('refuse %j as a name to include', async (name) => {
    personRepository(source, { a: '1' });
    await expect(list({ include: [name] })).rejects.toMatchObject({ code: 'include_outside' });
  });

  it('refuse a name that is not there', async () => {
    personRepository(source, { a: '1' });
    await expect(list({ include: ['absent'] })).rejects.toMatchObject({ code: 'include_not_found' });
    await expect(list({ include: ['--exclude=x'] })).rejects.toMatchObject({ code: 'include_not_found' });
  });

  it('keep their names as bytes, links as links', async () => {
    const odd = [Buffer.from('new\nline'), Buffer.from([0x62, 0x80]), Buffer.from('"q"\t'), Buffer.from('? x'), Buffer.from('1 .M N...')];
    personRepository(source, { a: '1' });
    for (const name of odd) put(source, name, 'x');
    symlinkSync('/etc/passwd', `${source}/link`);
    const untracked = (await list()).files.filter((file) => file.standing === 'untracked').map((file) => text(file.path));
    expect(untracked.sort()).toEqual([...odd.map(text), 'link'].sort());
    commitAll(source, 'odd');
    expect((await list()).files.map((file) => text(file.path)).sort()).toEqual(['a', 'link', ...odd.map(text)].sort());
  });

  it('leave out nested repositories and submodules, by name', async () => {
    personRepository(source, { a: '1' });
    personRepository(`${source}/nested`, { b: '1' });
    personRepository(`${source}/mod`, { c: '1' });
    git(source, ['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},mod`]);
    git(source, ['commit', '-q', '-m', 'submodule']);
    const found = await list();
    expect(found.names).toEqual(['committed a']);
    expect(found.leftOut.map((left) => [text(left.path), left.reason])).toEqual([['nested/', 'nested_repository']]);
    expect(found.submodules.map(text)).toEqual(['mod']);
  });

  it("follow the person's own ignore file and the repository's exclude file", async () => {
    personRepository(source, { a: '1' });
    put(place.path('home/.config/git'), 'ignore', '*.mine\n');
    put(`${source}/.git/info`, 'exclude', '*.theirs\n');
    for (const name of ['x.mine', 'x.theirs', 'x.other']) put(source, name, 'x');
    const repository = await inspectRepository(source, { ...PERSON, HOME: place.path('home') });
    expect((await listUploadFiles(repository)).files.map((file) => text(file.path))).toEqual(['a', 'x.other']);
    git(source, ['config', 'core.excludesFile', place.path('other-ignore')]);
    put(place.dir, 'other-ignore', '*.other\n');
    const again = await inspectRepository(source, { ...PERSON, HOME: place.path('home') });
    expect((await listUploadFiles(again)).files.map((file) => text(file.path))).toEqual(['a', 'x.mine']);
  });

  it('are clean in a checkout whose line endings or modes differ by configuration', async () => {
    personRepository(source, { '.gitattributes': '*.txt text\n', 'a.txt': 'one\ntwo\n', b: '1' });
    git(source, ['config', 'core.autocrlf', 'true']);
    git(source, ['config', 'core.fileMode', 'false']);
    rmSync(`${source}/a.txt`);
    git(source, ['checkout', '--', 'a.txt']);
    expect(readFileSync(`${source}/a.txt`, 'utf8')).toBe('one\r\ntwo\r\n');
    writeFileSync(`${source}/a.txt`, 'one\r\ntwo\r\n');
    chmodSync(`${source}/b`, 0o755);
    expect((await list()).dirtyPaths).toBe(0);
  });

  it('see a change of the same size in the same second as the index', async () => {
    personRepository(source, { a: '1' });
    git(source, ['update-index', '--refresh']);
    put(source, 'a', '2');
    expect((await list()).synthetic.changed.map(text)).toEqual(['a']);
  });

  it('leave sparse paths as they are, and name filters that are not run', async () => {
    personRepository(source, { 'in/a': '1', 'out/b': '1', '.gitattributes': '*.bin filter=lfs\n', 'x.bin': 'pointer' });
    git(source, ['sparse-checkout', 'set', '--no-cone', '/in/', '/.gitattributes', '/x.bin']);
    const found = await list();
    expect(found.names).toEqual(['committed .gitattributes', 'committed in/a', 'committed x.bin']);
    expect(found).toMatchObject({ sparsePaths: 1, lfs: true, filters: ['lfs'], dirtyPaths: 0 });
  });

  it('become a base commit of the changes alone', async () => {
    const head = personRepository(source, { a: '1', gone: '1', '.env': 'committed', kept: 'k' });
    put(source, 'a', '2');
    put(source, 'new', 'n');
    put(source, '.env', 'secret now');
    rmSync(`${source}/gone`);
    const found = await list();
    await packHead(await inspect(), place.path('head.pack'));
    const mission = await MissionRepository.init(place.path('mission.git'));
    await mission.importPack(place.path('head.pack'), { head });
    const tree = fakeTree(found.files.map((file): FakeEntry => [file.path, readFileSync(`${source}/${text(file.path)}`)]));
    const { changed, removed } = found.synthetic;
    const base = await mission.importSyntheticBase({
      headCommit: head,
      manifest: tree.manifest,
      changed,
      removed,
      content: tree.open,
      commit: PLAN,
    });
    expect(git(mission.dir, ['diff-tree', '-r', '--name-status', head, base.commit])).toBe('M\ta\nD\tgone\nA\tnew');
  });
});

describe('nothing that a repository configures is run', () => {
  it('by reading, packing, listing and writing a branch', async () => {
    personRepository(source, { a: '1', b: '1' });
    const canary = plant(source);
    put(source, 'a', '2');
    // The control: git itself runs what was planted.
    expect(() => git(source, ['status'])).toThrow();
    expect(marks()).not.toEqual([]);
    for (const mark of marks()) rmSync(place.path(mark));
    const index = readFileSync(`${source}/.git/index`);

    const repository = await inspect();
    const found = await listUploadFiles(repository);
    expect(found.synthetic.changed.map(text)).toEqual(['.gitattributes', 'a']);
    expect(found.filters).toEqual(['evil']);
    await packHead(repository, place.path('head.pack'));
    const mission = await MissionRepository.init(place.path('mission.git'));
    await mission.importPack(place.path('head.pack'), { head: repository.head });
    const tree = fakeTree([
      ['a', '3'],
      ['.gitattributes', '* filter=evil diff=evil\n'],
      ['b', '1'],
    ]);
    const done = await mission.importSnapshot({
      baseCommit: repository.head,
      baseManifest: [],
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    await mission.diff(repository.head, done.commit);
    await mission.packFor(done.commit, { not: [repository.head] }, place.path('out.pack'));
    await writeBranch(repository, { packFile: place.path('out.pack'), branch: 'firecrew/x', commit: done.commit });
    expect(marks()).toEqual([]);

    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const outcome = await pushBranch(repository, { remote: place.path('remote.git'), branch: 'firecrew/x', env: PERSON });
    expect(outcome).toMatchObject({ verdict: 'pushed' });
    expect(marks()).toEqual([]);
    expect(existsSync(canary)).toBe(false);
    expect(readFileSync(`${source}/.git/index`).equals(index)).toBe(true);
  });
});

describe('a result in the repository of a person', () => {
  async function deliver(content = '2') {
    const head = existsSync(source) ? git(source, ['rev-parse', 'trunk']) : personRepository(source, { a: '1' });
    const repository = await inspect();
    rmSync(place.path('head.pack'), { force: true });
    rmSync(place.path('out.pack'), { force: true });
    await packHead(repository, place.path('head.pack'));
    const mission = await MissionRepository.init(place.path('mission.git'));
    await mission.importPack(place.path('head.pack'), { head });
    const tree = fakeTree([['a', content]]);
    const { commit } = await mission.importSnapshot({
      baseCommit: head,
      baseManifest: [],
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    await mission.packFor(commit, { not: [head] }, place.path('out.pack'));
    return {
      repository,
      commit,
      head,
      mission,
      write: (branch: string) => writeBranch(repository, { packFile: place.path('out.pack'), branch, commit }),
    };
  }

  it('is a new branch; working tree, index and HEAD stay', async () => {
    const { write, commit, head } = await deliver();
    put(source, 'a', 'being edited');
    expect(await write('firecrew/x')).toEqual({ verdict: 'written', branch: 'firecrew/x', redirected: false });
    expect(await write('firecrew/x')).toEqual({ verdict: 'already_there', branch: 'firecrew/x', redirected: false });
    expect(git(source, ['rev-parse', 'firecrew/x', 'HEAD'])).toBe(`${commit}\n${head}`);
    expect(git(source, ['status', '--porcelain'])).toBe('M a');
    expect(git(source, ['fsck', '--strict', '--no-dangling'])).toBe('');
  });

  it('goes to a suffixed branch when the name holds other work, which is not moved', async () => {
    const { write, commit, head } = await deliver();
    git(source, ['branch', 'firecrew/x']);
    const suffixed = `firecrew/x-${commit.slice(0, 8)}`;
    expect(await write('firecrew/x')).toEqual({ verdict: 'written', branch: suffixed, redirected: true });
    expect(await write('firecrew/x')).toEqual({ verdict: 'already_there', branch: suffixed, redirected: true });
    expect(git(source, ['rev-parse', 'firecrew/x', suffixed])).toBe(`${head}\n${commit}`);
  });

  it('is refused by name when no branch can be made, and says where the commit is', async () => {
    const { write, commit } = await deliver();
    git(source, ['branch', 'firecrew']);
    await expect(write('firecrew/x')).rejects.toMatchObject({ code: 'branch_name_taken', action: expect.stringContaining(commit) });
    await expect(write('-x')).rejects.toMatchObject({ code: 'branch_invalid' });
  });

  it('is refused when the pack is broken or holds another commit', async () => {
    const { repository, commit } = await deliver();
    put(place.dir, 'bad.pack', 'PACK');
    const write = (packFile: string, id: string) => writeBranch(repository, { packFile, branch: 'firecrew/x', commit: id });
    await expect(write(place.path('bad.pack'), commit)).rejects.toMatchObject({ code: 'pack_unreadable' });
    await expect(write(place.path('out.pack'), '1'.repeat(40))).rejects.toMatchObject({ code: 'pack_incomplete' });
    expect(git(source, ['for-each-ref', 'refs/heads/firecrew'])).toBe('');
  });

  it('is refused when a tree of the pack holds a name that would act on checkout', async () => {
    const { repository, head } = await deliver();
    const other = place.path('other');
    git(place.dir, ['clone', '-q', source, 'other']);
    const blob = git(other, ['hash-object', '-w', '--stdin'], 'x');
    const inner = git(other, ['mktree'], `100644 blob ${blob}\tconfig\n`);
    const evil = git(other, ['mktree'], `040000 tree ${inner}\t.git\n`);
    const commit = git(other, ['commit-tree', evil, '-p', head, '-m', 'x']);
    const { execFileSync } = await import('node:child_process');
    writeFileSync(
      place.path('evil.pack'),
      execFileSync('git', ['pack-objects', '--revs', '--stdout', '-q'], { cwd: other, input: `${commit}\n^${head}\n` }),
    );
    await expect(writeBranch(repository, { packFile: place.path('evil.pack'), branch: 'firecrew/x', commit })).rejects.toMatchObject({
      code: 'pack_unreadable',
    });
  });

  it("is pushed to a named remote with the person's configuration", async () => {
    const { write, repository, commit } = await deliver();
    await write('firecrew/x');
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    git(source, ['remote', 'add', 'origin', 'short:remote.git']);
    git(source, ['config', `url.${place.dir}/.insteadOf`, 'short:']);
    const push = { remote: 'origin', branch: 'firecrew/x', env: { ...PERSON, GIT_DIR: '/nonexistent', GIT_INDEX_FILE: '/nonexistent' } };
    expect(await pushBranch(repository, push)).toMatchObject({ verdict: 'pushed', reason: 'new_branch', redirected: false });
    expect(await pushBranch(repository, push)).toMatchObject({ verdict: 'up_to_date' });
    expect(git(place.path('remote.git'), ['rev-parse', 'firecrew/x'])).toBe(commit);
  });

  it('is pushed to a suffixed branch when the remote diverged, and quoted when a hook declines', async () => {
    const { write, repository, commit } = await deliver();
    await write('firecrew/x');
    const remote = place.path('remote.git');
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    personRepository(place.path('unrelated'), { z: 'z' });
    git(place.path('unrelated'), ['push', '-q', remote, 'trunk:refs/heads/firecrew/x']);
    const push = { remote, branch: 'firecrew/x', env: PERSON };
    expect(await pushBranch(repository, push)).toMatchObject({
      verdict: 'pushed',
      branch: `firecrew/x-${commit.slice(0, 8)}`,
      redirected: true,
    });
    put(`${remote}/hooks`, 'update', '#!/bin/sh\necho "ticket missing" >&2\nexit 1\n', 0o755);
    git(remote, ['update-ref', '-d', `refs/heads/firecrew/x-${commit.slice(0, 8)}`]);
    const declined = await pushBranch(repository, push);
    expect(declined).toMatchObject({ verdict: 'refused', reason: 'remote_rejected', detail: '[remote rejected] (hook declined)' });
    expect(declined.remoteText).toContain('ticket missing');
  });

  it('is not pushed to what is no remote', async () => {
    const { write, repository } = await deliver();
    await write('firecrew/x');
    const push = (remote: string, branch = 'firecrew/x') => pushBranch(repository, { remote, branch, env: PERSON });
    await expect(push('--receive-pack=touch x')).rejects.toMatchObject({ code: 'remote_refused' });
    await expect(push('ext::sh -c id')).rejects.toMatchObject({ code: 'remote_refused' });
    await expect(push('origin', 'absent')).rejects.toMatchObject({ code: 'branch_missing' });
    expect(await push('origin')).toMatchObject({ verdict: 'unreadable', reason: 'remote_unreadable' });
  });
});
