import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GIT_SERVER_CA, GIT_SERVER_LOGIN, GitServer } from './support/git-server.ts';
import { Installation } from './support/installation.ts';
import { git, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n' };
const FIX = `echo 'module.exports = (a, b) => a + b;' > add.js`;

describe('a repository at a URL', () => {
  let folder: string;
  let server: GitServer;
  let installation: Installation;
  let remote: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-git-'));
    remote = join(folder, 'team', 'project.git');
    const source = await makeRepository(join(folder, 'source'), FILES);
    await mkdir(join(folder, 'team'));
    execFileSync('git', ['clone', '-q', '--bare', source, remote]);
    server = await GitServer.start(folder);
    await writeFile(join(folder, 'password'), `${GIT_SERVER_LOGIN.password}\n`, { mode: 0o600 });
    installation = await Installation.start({
      bubblewrap: 'auto',
      server: {
        git: {
          caFile: GIT_SERVER_CA,
          addressRules: [{ host: 'localhost', addresses: ['127.0.0.1', '::1'] }],
          credentials: [{ host: `localhost:${server.port}`, username: GIT_SERVER_LOGIN.username, passwordFile: join(folder, 'password') }],
        },
      },
    });
  });
  afterAll(async () => {
    await installation.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const order = (agent: string, push = true) => ({
    repository: '',
    agent,
    check: 'node test.js',
    source: { kind: 'url' as const, url: server.url('team/project.git'), branch: null, push },
  });

  /** Runs a mission on the URL and gives its end. */
  async function run(agent: string, push = true) {
    const { source, check } = order(agent, push);
    const mission = await installation.client.createMission({
      title: 'Fix the sum',
      repository: source,
      phases: [{ kind: 'coding', task: 'fix', doneWhenCheck: check }],
      agent: { command: agent },
      allowUnisolated: true,
    });
    return { id: mission.id, end: (await installation.ended(mission.id)).end };
  }

  it('is cloned, and the verified change is pushed to it as a branch', async () => {
    const { end } = await run(FIX);
    expect(end).toMatchObject({ outcome: { kind: 'completed' }, delivery: { state: 'delivered', pushed: 'pushed', verified: true } });
    const branch = end.delivery?.branch ?? '';
    expect((await git(remote, 'rev-parse', `refs/heads/${branch}`)).trim()).toBe(end.delivery?.commit);
    expect(await git(remote, 'show', `${branch}:add.js`)).toContain('a + b');
    expect((await git(remote, 'rev-parse', 'main')).trim()).toBe(end.delivery?.baseCommit);
    expect(server.requests).toBeGreaterThan(0);
  });

  it('shows the credential to nobody: not to the guest, not in events, logs or the record', async () => {
    const { id, end } = await run(`${FIX}; env; cat .git/config; ls -a`);
    expect(end.outcome).toEqual({ kind: 'completed' });
    const seen = [JSON.stringify(await installation.events(id)), (await installation.log(id, 1)).toString(), installation.server.logTail()];
    for (const artifact of await installation.client.artifacts(id)) {
      const file = join(folder, 'artifact');
      await installation.client.downloadArtifact(id, artifact, file);
      seen.push(await readFile(file, 'utf8'));
      await rm(file);
    }
    expect(seen.join('\n')).not.toContain(GIT_SERVER_LOGIN.password);
    expect(seen.join('\n')).toContain('repositoryformatversion');
  });

  it('is not pushed to when nobody asked for it', async () => {
    const { end } = await run(FIX, false);
    expect(end.delivery).toMatchObject({ state: 'delivered', pushed: 'not_wanted' });
    await expect(git(remote, 'rev-parse', '--verify', `refs/heads/${end.delivery?.branch}`)).rejects.toThrow();
  });

  it('gets changes of protected paths only after a person has approved them', async () => {
    const { id, end } = await run(`${FIX}; mkdir -p .github/workflows; echo 'on: push' > .github/workflows/ci.yml`);
    expect(end.delivery).toMatchObject({
      state: 'awaiting_approval',
      pushed: 'awaiting_approval',
      protectedPaths: ['.github/workflows/ci.yml'],
    });
    const branch = end.delivery?.branch ?? '';
    await expect(git(remote, 'rev-parse', '--verify', `refs/heads/${branch}`)).rejects.toThrow();
    await installation.client.approve(id);
    expect((await git(remote, 'rev-parse', `refs/heads/${branch}`)).trim()).toBe(end.delivery?.commit);
    const view = await installation.client.mission(id);
    expect(view.phases[0]?.delivery).toMatchObject({ state: 'delivered', pushed: 'pushed' });
    expect(view.end?.delivery).toMatchObject({ pushed: 'pushed' });
    await expect(installation.client.approve(id)).rejects.toMatchObject({ code: 'nothing_to_approve' });
  });

  it('that refuses the push keeps the work: a degraded success that says why', async () => {
    const hook = join(remote, 'hooks', 'pre-receive');
    await mkdir(join(remote, 'hooks'), { recursive: true });
    await writeFile(hook, '#!/bin/sh\necho "branches are closed this week" >&2\nexit 1\n', { mode: 0o755 });
    try {
      const { end } = await run(FIX);
      expect(end).toMatchObject({ outcome: { kind: 'completed' }, delivery: { state: 'delivered', pushed: 'failed' } });
      expect(end.delivery?.pushDetail).toContain('branches are closed this week');
    } finally {
      await rm(hook);
    }
  });

  it('that is gone when the work is done keeps the work, and says so', async () => {
    const running = run(`${FIX}; sleep 2`);
    await until('a shim', async () => (await readdir(join(installation.home, 'node/turns'))).length > 0);
    await rename(remote, `${remote}.gone`);
    try {
      const { id, end } = await running;
      expect(end).toMatchObject({ outcome: { kind: 'completed' }, delivery: { state: 'delivered', pushed: 'failed', verified: true } });
      expect(end.delivery?.pushDetail).toContain('the remote gave no answer');
      const pack = await installation.client.pack(id, join(folder, 'kept.pack'));
      expect(pack.commit).toBe(end.delivery?.commit);
    } finally {
      await rename(`${remote}.gone`, remote);
    }
  });

  it('that wants a login which the server does not have is refused, and nobody is asked', async () => {
    const other = await GitServer.start(folder);
    try {
      const created = installation.client.createMission({
        title: 'x',
        repository: { kind: 'url', url: other.url('team/project.git'), branch: null, push: false },
        phases: [{ kind: 'coding', task: 'x' }],
        agent: { command: 'true' },
      });
      await expect(created).rejects.toMatchObject({ code: 'remote_unreadable', message: expect.stringMatching(/could not read Username/) });
      expect(other.requests).toBe(0);
    } finally {
      await other.stop();
    }
  });

  it.each([
    ['a branch that is not there', { branch: 'nope' }, 'remote_branch_missing'],
    ['a repository that is not there', { url: 'team/other.git' }, 'remote_unreadable'],
  ])('with %s is refused by name', async (_name, over: { branch?: string; url?: string }, code) => {
    const source = { kind: 'url' as const, url: server.url(over.url ?? 'team/project.git'), branch: over.branch ?? null, push: false };
    const created = installation.client.createMission({
      title: 'x',
      repository: source,
      phases: [{ kind: 'coding', task: 'x' }],
      agent: { command: 'true' },
    });
    await expect(created).rejects.toMatchObject({ code });
  });

  it('whose host has an address that the operator did not name is not reached at all', async () => {
    const before = server.requests;
    const source = {
      kind: 'url' as const,
      url: server.url('team/project.git').replace('localhost', 'ip6-localhost'),
      branch: null,
      push: false,
    };
    const created = installation.client.createMission({
      title: 'x',
      repository: source,
      phases: [{ kind: 'coding', task: 'x' }],
      agent: { command: 'true' },
    });
    await expect(created).rejects.toMatchObject({ code: 'remote_unreadable' });
    expect(server.requests).toBe(before);
  });
});
