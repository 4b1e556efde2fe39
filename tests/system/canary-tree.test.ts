import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { probeBubblewrap } from '@firecrew/vmm';
import { inspectRepository, pushBranch } from '@firecrew/workspace';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Canaries } from './support/canary.ts';
import { Installation } from './support/installation.ts';
import { fetchDelivery, filesAt, git, makeRepository } from './support/repository.ts';

describe.each(['auto', 'off'] as const)('invariant 16, with bubblewrap %s', (bubblewrap) => {
  let installation: Installation;
  let canaries: Canaries;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap });
    canaries = await Canaries.at(join(installation.home, 'canaries'));
  });
  afterAll(async () => await installation.stop());

  /** A repository with canaries everywhere, its hooks and settings planted after the commit, which would have run them. */
  async function makeCanaryRepository(name: string): Promise<string> {
    const repository = await makeRepository(join(installation.home, 'scratch', name), canaries.tree());
    const programs = Object.entries(canaries.tree()).flatMap(([path, text]) => (text.startsWith('#!') ? [path] : []));
    for (const path of programs) await chmod(join(repository, path), 0o755);
    await git(repository, 'commit', '-qam', 'second');
    await canaries.plant(repository);
    return repository;
  }

  it('runs nothing of a tree outside the attempt, from the upload to the push', async () => {
    const repository = await makeCanaryRepository('repository');
    const remote = join(installation.home, 'scratch', 'remote.git');
    await git(installation.home, 'init', '-q', '--bare', remote);
    expect(await canaries.sightings()).toEqual([]);
    const settings = Buffer.from(canaries.gitSettings()).toString('base64');
    const { id } = await installation.startMission({
      repository,
      agent: `./sh; ./setup.sh; . ./.envrc; echo 'module.exports = (a, b) => a + b;' > add.js; cp check.sh new-program.sh
        for f in git/config planted; do echo ${settings} | base64 -d >> .git/config; done
        mkdir -p .git/planted .git/hooks; for h in pre-commit post-checkout reference-transaction pre-push; do cp check.sh .git/planted/$h; cp check.sh .git/hooks/$h; done
        echo '* filter=canary' > more.gitattributes; cp -r .husky husky-again; echo '{"scripts":{"prepare":"sh check.sh"}}' > husky-again/package.json`,
      extra: { phases: [{ kind: 'coding', task: 'fix add', setup: './setup.sh', doneWhenCheck: './check.sh && grep -q "a + b" add.js' }] },
    });
    const { end } = await installation.ended(id);
    expect(end, end.detail).toMatchObject({ missionState: 'completed', delivery: { verified: true } });
    for (const artifact of await installation.client.artifacts(id))
      await installation.client.downloadArtifact(id, artifact, join(installation.home, 'scratch', `${artifact.id}-${artifact.kind}`));
    const delivered = await fetchDelivery(installation.client, id, repository, join(installation.home, 'scratch', 'delivery.pack'));
    expect(delivered.verdict).toBe('written');
    const pushed = await pushBranch(await inspectRepository(repository, process.env), {
      remote,
      branch: delivered.branch,
      env: process.env,
    });
    expect(pushed).toMatchObject({ verdict: 'pushed', branch: delivered.branch });
    expect(await canaries.ranOnHost()).toEqual([]);
    // Without isolation the attempt's own processes reach the folder, so that the canaries are seen to sing there.
    const isIsolated = bubblewrap === 'auto' && (await probeBubblewrap()).usable;
    expect(await canaries.ranInAttempts()).toEqual(isIsolated ? [] : ['check', 'envrc', 'program-sh', 'setup']);
    const files = await filesAt(remote, delivered.commit);
    expect(files).toMatchObject({ 'add.js': expect.stringContaining('a + b'), 'new-program.sh': canaries.script('check') });
    expect(Object.keys(files).filter((path) => path.startsWith('.git/'))).toEqual([]);
  });

  it.each([
    ['the file monitor', 'fsmonitor', ['git', 'diff', '--no-ext-diff', '--stat']],
    ['a hook', 'hook-pre-commit', ['git', 'commit', '-q', '--allow-empty', '-m', 'x']],
    ['a filter', 'smudge', ['sh', '-c', 'rm add.js; git checkout -q -- add.js']],
    ['a diff program', 'external-diff', ['git', '--no-pager', 'show', '--ext-diff', 'HEAD']],
    ['a check', 'check', ['sh', '-c', './check.sh']],
    ['an environment file', 'envrc', ['sh', '-c', '. ./.envrc']],
    ['a preload', 'preload', ['node', '--require', './preload.cjs', '-e', '0']],
    ['a planted program', 'program-git', ['sh', '-c', 'PATH=".:$PATH" git status']],
  ])('would see %s run on the host', async (_what, name, command) => {
    const repository = await makeCanaryRepository(`control-${name}`);
    const [program = '', ...args] = command;
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: join(installation.home, 'person'),
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@b',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@b',
    };
    await new Promise<void>((resolve) => execFile(program, args, { cwd: repository, env }, () => resolve()));
    expect(await canaries.ranOnHost()).toContain(name);
  });
});
