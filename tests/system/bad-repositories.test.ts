import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { appendFile, chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { commitAll, FILES, ODDITIES } from './support/odd-repositories.ts';
import { git, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

/** Lists what the agent was given, in the log. */
const SEEN = `find . -path ./.git -prune -o ! -type d -print | sort`;
const MANY_FILES = 200_000;

let command: Command;
const at = (name: string): string => join(command.folder, 'work', name);
beforeAll(async () => {
  command = await Command.make({ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' });
});
afterAll(async () => await command.stop());

/** Everything of a repository that a run may not touch: work tree, index, HEAD, settings, and branches of others. */
function fingerprint(folder: string): string {
  const hash = createHash('sha256');
  const walk = (path: Buffer): void => {
    const entries = readdirSync(path, { withFileTypes: true, encoding: 'buffer' });
    for (const entry of entries.sort((one, other) => one.name.compare(other.name))) {
      const name = Buffer.concat([path, Buffer.from('/'), entry.name]);
      const below = name.toString('latin1').slice(folder.length + 1);
      // A push also leaves the branch that it made in the folder of the remote's.
      if (/^\.git\/(?:objects|(?:logs\/)?refs\/(?:heads|remotes\/\w+)\/firecrew)(?:\/|$)/.test(below)) continue;
      if (!below.startsWith('.git/') || !entry.isDirectory()) hash.update(name);
      if (entry.isFile()) hash.update(readFileSync(name));
      else if (entry.isDirectory()) walk(name);
    }
  };
  walk(Buffer.from(folder));
  return hash.digest('hex');
}

/** `firecrew run` on a repository of this test; progress and result as they were printed. */
async function run(folder: string, agent: string, ...more: string[]) {
  const args = ['run', '--repo', folder, '--task', 'do it', '--agent-cmd', agent, ...more];
  const { code, stdout, stderr } = await command.run([...args, '--json']);
  const end = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as {
    missionId: string;
    branch: string;
    commit: string;
    pushed: string;
    pushDetail: string;
    baseCommit: string;
    error: unknown;
  };
  return { code, stderr, end };
}

async function logOf(missionId: string): Promise<string[]> {
  return (await command.run(['logs', missionId])).stdout.split('\n').filter((line) => line.startsWith('./'));
}

async function treeOf(folder: string, commit: string): Promise<string[]> {
  const lines = (await git(folder, 'ls-tree', '-r', '-z', '--name-only', commit)).split('\0');
  return lines.filter((line) => line !== '').sort();
}

/** A repository, or something else, that a run refuses before anything is started. */
interface Refusal {
  readonly what: string;
  readonly make: (folder: string) => Promise<unknown>;
  readonly args?: readonly string[];
  readonly code: string;
  readonly exit: number;
  readonly says: RegExp;
}

const dirty = async (folder: string): Promise<void> => {
  await makeRepository(folder, FILES);
  await writeFile(join(folder, 'new.txt'), 'x');
};

const REFUSALS: readonly Refusal[] = [
  { what: 'a folder without a repository', make: (to) => mkdir(to), code: 'repo_not_git', exit: 1, says: /git init/ },
  { what: 'a folder that is not there', make: async () => undefined, code: 'repo_not_found', exit: 1, says: /Name the folder/ },
  { what: 'a file', make: (to) => writeFile(to, ''), code: 'repo_not_found', exit: 1, says: /Name the folder/ },
  {
    what: 'a repository without a commit',
    make: async (to) => execFileSync('git', ['init', '-q', to]),
    code: 'repo_unborn',
    exit: 1,
    says: /first commit/,
  },
  {
    what: 'a bare repository',
    make: async (to) => execFileSync('git', ['init', '-q', '--bare', to]),
    code: 'repo_bare',
    exit: 1,
    says: /checkout/,
  },
  {
    what: 'a clone without all objects',
    make: async (to) => {
      const origin = await makeRepository(`${to}.origin`, FILES);
      await git(origin, 'config', 'uploadpack.allowFilter', 'true');
      execFileSync('git', ['clone', '-q', '--filter=blob:none', `file://${origin}`, to]);
    },
    code: 'repo_partial',
    exit: 2,
    says: /--refetch/,
  },
  { what: 'changes where none may be', make: dirty, args: ['--require-clean'], code: 'tree_dirty', exit: 2, says: /--require-clean/ },
  {
    what: 'changes that a push would publish',
    make: dirty,
    args: ['--push', 'origin'],
    code: 'push_needs_push_dirty',
    exit: 2,
    says: /--push-dirty/,
  },
  { what: 'a file outside', make: dirty, args: ['--include', '../x'], code: 'include_outside', exit: 1, says: /relative to its root/ },
  { what: 'a file that is not there', make: dirty, args: ['--include-secret', '.env'], code: 'include_not_found', exit: 1, says: /exists/ },
];

describe('a run is refused, and nothing is started, for', () => {
  it.each(REFUSALS)('$what', async ({ what, make, args, code, exit, says }) => {
    const folder = at(`refused ${what}`);
    await make(folder);
    const before = existsSync(join(folder, '.git')) ? fingerprint(folder) : undefined;
    const refused = await run(folder, 'true', ...(args ?? []));
    expect(refused).toMatchObject({
      code: exit,
      end: { missionId: null, exitCode: exit, error: { code, action: expect.stringMatching(says) } },
    });
    expect(refused.stderr).toMatch(new RegExp(`firecrew: ${code}: .+\n {10}.+`));
    if (before !== undefined) expect(fingerprint(folder)).toBe(before);
    expect(await command.json(['status'])).toMatchObject({ supervisor: null, server: null, database: null, nodeAgent: null });
  });
});

describe('a repository', () => {
  it.each(ODDITIES)(
    '$what comes to a branch, and is left as it was',
    async ({ what, make, agent, args, notes, sees, tree, hasEscapes, also }) => {
      const made = at(what.replaceAll(' ', '-'));
      const folder = (await make(made)) ?? made;
      const before = fingerprint(folder);
      const { code, stderr, end } = await run(folder, `${SEEN}; ${agent ?? 'true'} && echo x > done.txt`, ...(args ?? []));
      expect(code, stderr).toBe(0);
      for (const note of notes ?? []) expect(stderr.split('\n')).toContain(note);
      expect(await treeOf(folder, end.commit)).toEqual([...tree].sort());
      expect((await git(folder, 'rev-parse', end.branch)).trim()).toBe(end.commit);
      // What travels beyond HEAD is nothing that git would commit.
      expect(stderr).not.toContain('uncommitted');
      expect(await git(folder, 'rev-parse', `${end.commit}^`)).toBe(await git(folder, 'rev-parse', 'HEAD'));
      if (sees !== undefined) expect(await logOf(end.missionId)).toEqual([...sees].sort());
      expect(fingerprint(folder)).toBe(before);
      await also?.(folder, end.commit);
      for (const verb of hasEscapes === true ? ['show', 'logs', 'events', 'fetch'] : [])
        expect((await command.run([verb, end.missionId])).stdout).not.toMatch(/[\u001b\u0007]/);
    },
  );
});

describe('uncommitted changes', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeRepository(at('dirty'), { ...FILES, 'gone.txt': 'g\n', 'staged.txt': 's\n' });
    await git(folder, 'init', '-q', '--bare', at('dirty.git'));
    await git(folder, 'remote', 'add', 'origin', at('dirty.git'));
    await git(folder, 'config', 'user.name', 'A Person');
    await git(folder, 'config', 'user.email', 'person@example.test');
    await appendFile(join(folder, 'add.js'), '// modified\n');
    await rm(join(folder, 'gone.txt'));
    await writeFile(join(folder, 'staged.txt'), 'S\n');
    await git(folder, 'add', 'staged.txt');
    await writeFile(join(folder, 'untracked.txt'), 'u\n');
  });

  it('become a base commit of the person, which --push-dirty pushes with the result', async () => {
    const before = fingerprint(folder);
    const { code, stderr, end } = await run(folder, `${SEEN}; echo x > done.txt`, '--push', 'origin', '--push-dirty');
    expect([code, end.pushed], stderr).toEqual([0, 'pushed']);
    expect(stderr).toContain('4 uncommitted changes travel: the base is a commit made of HEAD and them');
    const remote = at('dirty.git');
    const changes = (from: string, to: string) => git(remote, 'diff-tree', '-r', '--name-status', from, to);
    const head = (await git(folder, 'rev-parse', 'HEAD')).trim();
    expect(await changes(head, end.baseCommit)).toBe('M\tadd.js\nD\tgone.txt\nM\tstaged.txt\nA\tuntracked.txt\n');
    expect(await changes(end.baseCommit, end.commit)).toBe('A\tdone.txt\n');
    expect(await git(remote, 'log', '--format=%an <%ae> %ct', '-1', end.baseCommit)).toBe('A Person <person@example.test> 0\n');
    expect((await git(remote, 'rev-parse', `${end.baseCommit}^`)).trim()).toBe(head);
    expect(fingerprint(folder)).toBe(before);
    await git(remote, 'branch', '-D', end.branch);
    const refused = await command.run(['fetch', end.missionId, '--push', 'origin']);
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('add --push-dirty') });
    expect(await git(remote, 'for-each-ref')).toBe('');
  });
});

describe('a branch that cannot be pushed is kept, and said why, when the remote', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeRepository(at('pushed'), FILES);
    for (const name of ['closed', 'vanishing']) {
      await git(folder, 'init', '-q', '--bare', at(`${name}.git`));
      await git(folder, 'remote', 'add', name, at(`${name}.git`));
    }
    const hook = join(at('closed.git'), 'hooks/pre-receive');
    await mkdir(join(at('closed.git'), 'hooks'), { recursive: true });
    await writeFile(hook, `#!/bin/sh\nprintf 'the \\033[31mbranch is protected\\n' >&2\nexit 1\n`);
    await chmod(hook, 0o755);
  });

  /** Runs with a push that fails, and gives what was said of it. */
  async function failedPush(remote: string, agent = 'echo x > done.txt'): Promise<string> {
    const { code, stdout } = await command.run(['run', '--repo', folder, '--task', 'x', '--agent-cmd', agent, '--push', remote]);
    expect(code, stdout).toBe(1);
    const id = /^mission +(\S+)/m.exec(stdout)?.[1] ?? '';
    const line = stdout.split('\n').find((text) => text.startsWith('pushed')) ?? '';
    expect(line).toContain(`again with: firecrew fetch ${id} --push REMOTE`);
    expect(line).not.toMatch(/[\u001b\u0007]/);
    const { phases } = await command.json(['show', id]);
    const branch = (phases as { delivery: { branch: string } }[])[0]?.delivery.branch ?? '';
    expect(await git(folder, 'show', `${branch}:done.txt`)).toBe('x\n');
    return line;
  }

  it('refuses it', async () => {
    expect(await failedPush('closed')).toMatch(/remote_rejected.*pre-receive hook declined.*branch is protected/);
  });

  it('is gone when the work is done', async () => {
    // Long enough for a call of the command to find it at work on a busy machine.
    const agent = 'echo x > done.txt; sleep 10';
    const running = failedPush('vanishing', agent);
    await until('a shim', async () => ((await command.json(['status'])).shims as unknown[]).length > 0);
    await rm(at('vanishing.git'), { recursive: true });
    expect(await running).toContain('remote_unreadable');
  });

  it('is none', async () => {
    expect(await failedPush('nowhere')).toMatch(/remote_unreadable.*nowhere/);
  });

  it('asks for a password: nobody is asked', async () => {
    const server = createServer((_request, response) => response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      expect(await failedPush(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x.git`)).toMatch(/prompts disabled/);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

it('two missions at once on one repository get a branch each', async () => {
  const folder = await makeRepository(at('twice'), FILES);
  const before = fingerprint(folder);
  const both = await Promise.all([run(folder, 'echo 1 > one.txt; sleep 1'), run(folder, 'echo 2 > two.txt; sleep 1')]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(await Promise.all(both.map(({ end }) => treeOf(folder, end.branch)))).toEqual([
    ['add.js', 'lib/a.txt', 'one.txt'],
    ['add.js', 'lib/a.txt', 'two.txt'],
  ]);
  expect(fingerprint(folder)).toBe(before);
});

it(`${MANY_FILES} files travel, and one changed is one changed`, async () => {
  const folder = at('many');
  await git(command.folder, 'init', '-q', '-b', 'main', folder);
  for (let index = 0; index < MANY_FILES; index += 1) {
    const name = join(folder, `d${Math.floor(index / 500)}`);
    // One after another without a pool of threads in between: that is most of the time otherwise.
    if (index % 500 === 0) mkdirSync(name);
    writeFileSync(join(name, `f${index}.txt`), `${index}\n`);
  }
  await commitAll(folder);
  const { code, stderr, end } = await run(folder, 'rm d0/f7.txt; echo x > done.txt');
  expect(code, stderr).toBe(0);
  expect(await git(folder, 'diff-tree', '-r', '--name-status', 'HEAD', end.commit)).toBe('D\td0/f7.txt\nA\tdone.txt\n');
}, 400_000);
