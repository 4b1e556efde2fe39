// Missions for real, from task to branch: needs the built server, node agent and bundles.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missionEventSchema } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunEnded, runEndedSchema } from '../src/run/run-event.ts';
import { eventually, type Started, TestHome } from './command.ts';

const home = new TestHome();
const repo = join(home.folder, 'repo');
const git = (...args: string[]): string => execFileSync('git', args, { cwd: repo, encoding: 'utf8', env: home.env }).trim();

beforeAll(async () => {
  mkdirSync(repo);
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'A');
  git('config', 'user.email', 'a@example.com');
  writeFileSync(join(repo, 'a.txt'), 'a\n');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  git('init', '-q', '--bare', join(home.folder, 'remote.git'));
  git('remote', 'add', 'origin', join(home.folder, 'remote.git'));
  home.env.FIRECREW_CEILING = 'inside.example';
  await home.run('up');
});
afterAll(() => home.remove());

function start(args: readonly string[]): Started {
  return home.start(['run', '--repo', '.', '--json', ...args], { cwd: repo });
}

/** The events and the last line of a run. */
function read(stdout: string): { seqs: number[]; kinds: string[]; end: RunEnded } {
  const lines = stdout.trim().split('\n');
  const events = lines.slice(0, -1).map((line) => missionEventSchema.parse(JSON.parse(line)));
  return {
    seqs: events.map((one) => one.seq),
    kinds: events.map((one) => one.body.kind),
    end: runEndedSchema.parse(JSON.parse(lines.at(-1) ?? '')),
  };
}

const AGENT = '#!/bin/sh\nif [ "$FIRECREW_ROUND" = 2 ]; then echo good > result.txt; else echo bad > result.txt; fi\n';

describe('a run', () => {
  it('brings a verified branch into the repository, and pushes it', async () => {
    writeFileSync(join(home.folder, 'agent.sh'), AGENT);
    chmodSync(join(home.folder, 'agent.sh'), 0o755);
    const { code, stdout, stderr } = await start([
      '--task',
      'Make it good',
      '--check',
      'grep -q good result.txt',
      '--agent-cmd',
      '../agent.sh',
      '--push',
      'origin',
    ]).ended;
    expect([code, stderr]).toEqual([0, expect.stringContaining('sent along')]);
    const { seqs, end } = read(stdout);
    expect(seqs).toEqual(seqs.map((_seq, index) => index + 1));
    expect(end).toMatchObject({
      outcome: { kind: 'completed' },
      verified: true,
      pushed: 'pushed',
      exitCode: 0,
      diffstat: { files: 1, insertions: 1 },
    });
    expect(git('show', `${end.branch}:result.txt`)).toBe('good');
    expect(git('rev-parse', `${end.branch}~1`)).toBe(git('rev-parse', 'main'));
    expect(execFileSync('git', ['rev-parse', end.branch ?? ''], { cwd: join(home.folder, 'remote.git'), encoding: 'utf8' }).trim()).toBe(
      end.commit,
    );
    expect([git('status', '--porcelain'), git('branch', '--show-current')]).toEqual(['', 'main']);
  });

  it('that is strict about the policy uploads and stores nothing that is above it', async () => {
    const blobs = () => readdirSync(join(home.root, 'server'), { recursive: true }).filter((path) => String(path).includes('blobs')).length;
    const missions = async (): Promise<unknown[]> => JSON.parse((await home.run('missions', '--limit', '500', '--json')).stdout);
    const before = [blobs(), (await missions()).length];
    writeFileSync(join(repo, 'never-sent.txt'), 'a file that was never sent before\n');
    const { code, stdout } = await start(['--task', 'x', '--agent-cmd', 'x', '--allow', 'outside.example', '--strict-policy']).ended;
    rmSync(join(repo, 'never-sent.txt'));
    expect([code, JSON.parse(stdout).error.code]).toEqual([2, 'policy_above_ceiling']);
    expect([blobs(), (await missions()).length]).toEqual(before);
  });

  it('that asks above the ceiling says so for each host, and goes on without it', async () => {
    const args = ['--task', 'Look', '--agent-cmd', 'echo x > x.txt', '--allow', 'inside.example', '--allow', 'outside.example'];
    const { end, kinds } = read((await start([...args, '--setup-allow', 'other.example:8443']).ended).stdout);
    expect(end.warnings.map(({ code, part, entry }) => [code, part, entry])).toEqual([
      ['policy_above_ceiling', 'setup', 'other.example:8443'],
      ['policy_above_ceiling', 'run', 'outside.example'],
    ]);
    expect([end.exitCode, kinds.slice(0, 3)]).toEqual([0, ['mission.created', 'notice', 'notice']]);
    const people = await home.start(['run', '--repo', '.', ...args, '--no-wait'], { cwd: repo }).ended;
    expect(people.stdout.split('\n').filter((line) => line.includes('policy: '))).toEqual([
      expect.stringMatching(/will not reach outside\.example: .*Ask the operator.*firecrew policy check outside\.example --mission msn_/),
    ]);
  });

  it('that fails its check is a failure, and its work comes back as unverified', async () => {
    const { code, stdout } = await start([
      '--task',
      'Fail',
      '--check',
      'false',
      '--agent-cmd',
      'echo x > x.txt; curl -s https://example.com',
    ]).ended;
    const { end } = read(stdout);
    expect([code, end.exitCode, end.verified, end.outcome?.kind]).toEqual([1, 1, false, 'gate_capped']);
    expect(end.branch).toMatch(/-wip$/);
    expect(git('show', `${end.branch}:x.txt`)).toBe('x');
  });

  it('survives the end of everything around it', async () => {
    const running = start(['--task', 'Survive', '--agent-cmd', 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done; echo done > done.txt']);
    const before = await eventually(async () => {
      const status = await home.status();
      return status.shims.length > 0 ? status : undefined;
    });
    for (const view of [before.supervisor, before.server, before.database, before.nodeAgent]) process.kill(view?.pid ?? 0, 'SIGKILL');
    const { code, stdout } = await running.ended;
    const { seqs, end } = read(stdout);
    expect([code, seqs]).toEqual([0, seqs.map((_seq, index) => index + 1)]);
    expect(git('show', `${end.branch}:done.txt`)).toBe('done');
    expect((await home.status()).supervisor?.pid).not.toBe(before.supervisor?.pid);
  });

  it('is cancelled by one Ctrl-C, which waits for its end', async () => {
    const running = start(['--task', 'Wait', '--agent-cmd', 'echo half > half.txt; sleep 60']);
    await eventually(() => (running.output().includes('"agent.started"') ? true : undefined));
    running.signal('SIGINT');
    const { code, stdout } = await running.ended;
    expect([code, read(stdout).end.missionState]).toEqual([3, 'cancelled']);
  });

  it('is left by a second Ctrl-C, and goes on', async () => {
    const running = start(['--task', 'Leave', '--agent-cmd', 'sleep 60']);
    await eventually(() => (running.output().includes('"agent.started"') ? true : undefined));
    running.signal('SIGINT');
    await eventually(() => (running.output().includes('press Ctrl-C again') ? true : undefined));
    running.signal('SIGINT');
    const { code, stderr } = await running.ended;
    // The mission may have ended between the two.
    expect([3, 130]).toContain(code);
    if (code === 130) expect(stderr).toContain('firecrew logs msn_');
  });

  it('that nobody waits for is fetched later, also by the end of its id', async () => {
    const { code, stdout } = await start(['--no-wait', '--task', 'Later', '--agent-cmd', 'echo out; echo later > later.txt']).ended;
    const id: string = JSON.parse(stdout).id;
    expect(code).toBe(0);
    const logs = await home.run('logs', id.slice(-8), '--follow');
    expect(logs.stdout).toContain('out\n');
    const fetched = await home.run('fetch', id.slice(-8), '--json');
    const reply: { branch: string; verdict: string } = JSON.parse(fetched.stdout);
    expect([fetched.code, reply.verdict]).toEqual([0, 'written']);
    expect(git('show', `${reply.branch}:later.txt`)).toBe('later');
    const saved = await home.run('artifacts', id, '--download', 'out', '--json');
    expect(saved.code).toBe(0);
    expect(JSON.parse(readFileSync(join(home.folder, 'out/record.json'), 'utf8')).missionId).toBe(id);
    const packed = await home.run('artifacts', id, '--archive', 'out.tar');
    expect(packed.code, packed.stderr).toBe(0);
    const listed = execFileSync('tar', ['-tf', join(home.folder, 'out.tar')], { encoding: 'utf8' });
    expect(listed.split('\n')).toContain('phase-1/attempt-1/record.json');
    const again = await home.run('artifacts', id, '--archive', 'out.tar');
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('is there already')]);
    expect((await home.run('show', id)).stdout).toContain('completed');
  });

  it('keeps the services from being stopped, unless forced', async () => {
    const { stdout } = await start(['--no-wait', '--task', 'Busy', '--agent-cmd', 'sleep 60']).ended;
    const id: string = JSON.parse(stdout).id;
    await eventually(async () => ((await home.status()).shims.length > 0 ? true : undefined));
    const refused = await home.run('down', '--json');
    expect([refused.code, JSON.parse(refused.stdout).refused]).toEqual([1, [id]]);
    const before = await home.status();
    expect((await home.run('down', '--force')).code).toBe(0);
    for (const view of [before.supervisor, before.server, before.database, before.nodeAgent, ...before.shims])
      expect(existsSync(`/proc/${view?.pid}/cwd`)).toBe(false);
  });

  it.each([
    [['--task', 'x'], 2, 'usage_wrong'],
    [['--task', 'x', '--agent-cmd', 'x', '--allow', 'https://url.example/'], 2, 'allow_list_invalid'],
    [['--task', 'x', '--agent-cmd', 'x', '--allow', 'outside.example', '--strict-policy'], 2, 'policy_above_ceiling'],
  ])('that cannot be made ends with a last line all the same: %j', async (args, exitCode, error) => {
    const { code, stdout } = await start(args).ended;
    expect([code, runEndedSchema.parse(JSON.parse(stdout))]).toMatchObject([
      exitCode,
      { kind: 'run.ended', missionId: null, exitCode, error: { code: error } },
    ]);
  });
});
