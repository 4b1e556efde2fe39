import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBackend } from '@firecrew/backend';
import { buildGuestEnvironment } from '@firecrew/spawn-bounds';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandHarness, harnessOf, type RoundInput, type RoundPlan } from '../src/index.ts';

const paths = { workspace: '/workspace/repo', taskFile: '/run/fc/task.md', feedbackFile: '/run/fc/feedback.md', agentDir: '/run/fc/agent' };
const input: RoundInput = { task: 'Add two numbers.', round: 1, agentCmd: 'my-agent --fast', paths };

const plan = (over: Partial<RoundInput> = {}): RoundPlan => {
  const result = commandHarness.planRound({ ...input, ...over });
  if (result.verdict === 'refused') throw new Error(result.message);
  return result;
};
const codeOf = (over: Partial<RoundInput>): unknown => {
  try {
    commandHarness.planRound({ ...input, ...over });
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
  return undefined;
};

describe('a round of a generic command', () => {
  it('puts the task, runs a shell in the workspace, and names no feedback in round 1', () => {
    expect(plan()).toEqual({
      verdict: 'ready',
      folders: ['/run/fc', '/run/fc/agent'],
      files: [{ path: '/run/fc/task.md', mode: 0o444, source: { kind: 'text', text: 'Add two numbers.\n' } }],
      argv: ['/bin/sh', '-c', 'my-agent --fast'],
      cwd: '/workspace/repo',
      callerEnvironment: {},
      platformEnvironment: { FIRECREW_TASK_FILE: '/run/fc/task.md', FIRECREW_ROUND: '1', FIRECREW_AGENT_DIR: '/run/fc/agent' },
    });
  });

  it('puts and names the feedback in later rounds', () => {
    const second = plan({ round: 2, feedback: 'not ok 1\n' });
    expect(second.files[1]).toEqual({ path: '/run/fc/feedback.md', mode: 0o444, source: { kind: 'text', text: 'not ok 1\n' } });
    expect(second.platformEnvironment).toMatchObject({ FIRECREW_FEEDBACK_FILE: '/run/fc/feedback.md', FIRECREW_ROUND: '2' });
  });

  it('places agent files read-only and executable, never through memory', () => {
    expect(plan({ agentFiles: [{ name: 'agent.mjs', hostPath: '/spool/ab12' }] }).files[1]).toEqual({
      path: '/run/fc/agent/agent.mjs',
      mode: 0o555,
      source: { kind: 'host_file', path: '/spool/ab12' },
    });
  });

  it("hands on the caller's environment as checked, apart from the platform's", () => {
    expect(plan({ env: { LANG: 'C' } }).callerEnvironment).toEqual({ LANG: 'C' });
    expect(plan({ env: { API_KEY: 'x' }, contract: ['API_KEY'] }).callerEnvironment).toEqual({ API_KEY: 'x' });
  });

  it('refuses what cannot be started, as a value', () => {
    expect(commandHarness.planRound({ ...input, env: { API_KEY: 'x' } })).toMatchObject({
      verdict: 'refused',
      rule: 'environment_secret_name',
    });
    expect(commandHarness.planRound({ ...input, env: { FIRECREW_ROUND: '9' } })).toMatchObject({ rule: 'environment_reserved_name' });
    expect(commandHarness.planRound({ ...input, agentCmd: 'x'.repeat(131_072) })).toMatchObject({
      rule: 'command_too_large',
      subject: '2',
    });
    expect(commandHarness.planRound({ ...input, agentCmd: 'a\0b' })).toMatchObject({ rule: 'command_nul' });
  });

  it.each([{ round: 0 }, { round: 1.5 }, { round: 2 }, { round: 1, feedback: 'x' }])('throws for %j', (over) => {
    expect(codeOf(over)).toBe('harness_round_invalid');
  });

  it.each([
    { taskFile: '/workspace/repo/task.md' },
    { agentDir: '/workspace/repo' },
    { feedbackFile: 'feedback.md' },
    { agentDir: '/run/../workspace/repo/agent' },
    { workspace: '' },
  ])('throws for paths that could land in the tree: %j', (over) => {
    expect(codeOf({ paths: { ...paths, ...over } })).toBe('harness_paths_invalid');
  });

  it('takes a folder beside the workspace that only begins with its name', () => {
    expect(plan({ paths: { ...paths, agentDir: '/workspace/repo-agent' } }).platformEnvironment.FIRECREW_AGENT_DIR).toBe(
      '/workspace/repo-agent',
    );
  });

  it.each(['../x', 'a/b', '.hidden', '', 'a b', 'a\n', '-x', 'x'.repeat(101)])('throws for the agent file %j', (name) => {
    expect(codeOf({ agentFiles: [{ name, hostPath: '/x' }] })).toBe('agent_file_invalid');
  });

  it('throws for two agent files of one name', () => {
    const file = { name: 'a', hostPath: '/x' };
    expect(codeOf({ agentFiles: [file, file] })).toBe('agent_file_invalid');
  });

  it('is the harness of the generic backend', () => {
    expect(harnessOf(findBackend('command'))).toBe(commandHarness);
  });
});

describe('a planned round, carried out', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'fc-harness-'));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  it('gives a real command its task, feedback, round and agent files, and leaves the tree to the agent', () => {
    const workspace = join(home, 'repo');
    mkdirSync(workspace);
    writeFileSync(
      join(home, 'blob'),
      '#!/bin/sh\ncat "$FIRECREW_TASK_FILE" "$FIRECREW_FEEDBACK_FILE" > out.txt; echo "$FIRECREW_ROUND" >> out.txt\n',
    );
    const round = plan({
      round: 2,
      feedback: 'again',
      agentCmd: '"$FIRECREW_AGENT_DIR"/agent.sh',
      agentFiles: [{ name: 'agent.sh', hostPath: join(home, 'blob') }],
      paths: { workspace, taskFile: join(home, 'in/task'), feedbackFile: join(home, 'in/feedback'), agentDir: join(home, 'in/agent') },
    });
    for (const folder of round.folders) mkdirSync(folder, { recursive: true });
    for (const file of round.files) {
      if (file.source.kind === 'text') writeFileSync(file.path, file.source.text);
      else copyFileSync(file.source.path, file.path);
      chmodSync(file.path, file.mode);
    }
    const env = buildGuestEnvironment({ image: { PATH: '/usr/bin:/bin' }, platform: round.platformEnvironment, egressUp: false });
    const [program, ...args] = round.argv;
    execFileSync(program, args, { cwd: round.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    expect(execFileSync('cat', [join(workspace, 'out.txt')], { encoding: 'utf8' })).toBe('Add two numbers.\nagain\n2\n');
    expect(readdirSync(workspace)).toEqual(['out.txt']);
    expect(statSync(join(home, 'in/agent/agent.sh')).mode & 0o777).toBe(0o555);
  });
});
