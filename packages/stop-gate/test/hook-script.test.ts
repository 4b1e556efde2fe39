import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { drainTap, type Gate, planHookFiles, readHookOutcome, stopHookScript, TAP_EVENT_MAX_BYTES, tapHookScript } from '../src/index.ts';

let home: string;
let repo: string;
let baseCommit: string;

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', repo, '-c', 'user.name=t', '-c', 'user.email=t@example.invalid', ...args], { encoding: 'utf8' }).trim();

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'fc-hook-'));
  repo = join(home, 'repo');
  for (const name of ['repo', 'config', 'state']) mkdirSync(join(home, name));
  git('init', '-q');
  writeFileSync(join(repo, 'a.txt'), 'a\n');
  git('add', '.');
  git('commit', '-q', '-m', 'base');
  baseCommit = git('rev-parse', 'HEAD');
  writeFileSync(join(home, 'stop-hook'), stopHookScript());
  writeFileSync(join(home, 'tap-hook'), tapHookScript());
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function install(gate: Gate, options: { base?: boolean } = {}): void {
  const files = planHookFiles({ gate, workspace: repo, ...(options.base === false ? {} : { baseCommit }) });
  for (const file of files) writeFileSync(join(home, 'config', file.name), file.text);
}

function stop(event: unknown = { hook_event_name: 'Stop', background_tasks: [] }): {
  status: number | null;
  reason: string | undefined;
  stdout: string;
} {
  const run = spawnSync('/bin/sh', [join(home, 'stop-hook'), join(home, 'config'), join(home, 'state')], {
    input: JSON.stringify(event),
    encoding: 'utf8',
  });
  const answer: unknown = run.stdout === '' ? undefined : JSON.parse(run.stdout);
  const reason =
    typeof answer === 'object' && answer !== null && 'decision' in answer && answer.decision === 'block' && 'reason' in answer
      ? String(answer.reason)
      : undefined;
  return { status: run.status, reason, stdout: run.stdout };
}

function outcome() {
  const log = join(home, 'state', 'log');
  return readHookOutcome({ log: existsSync(log) ? readFileSync(log) : undefined, capped: existsSync(join(home, 'state', 'capped')) });
}

describe('the Stop hook in a real repository', () => {
  it('refuses a clean tree at the base with a reason', () => {
    install({ requireChange: true });
    expect(stop()).toMatchObject({ status: 0, reason: expect.stringContaining('Nothing in the working tree') });
    expect(outcome()).toMatchObject({ blocks: 1, capped: false, lastReason: 'no_change' });
  });

  it('passes an untracked file', () => {
    install({ requireChange: true });
    writeFileSync(join(repo, 'new.txt'), 'n\n');
    expect(stop()).toMatchObject({ status: 0, stdout: '' });
  });

  it('passes a commit on a clean tree', () => {
    install({ requireChange: true });
    writeFileSync(join(repo, 'a.txt'), 'b\n');
    git('commit', '-q', '-a', '-m', 'work');
    expect(stop()).toMatchObject({ status: 0, stdout: '' });
  });

  it('refuses when the base is not known, rather than passing', () => {
    install({ requireChange: true }, { base: false });
    expect(stop().reason).toContain('could not be determined');
    expect(outcome().lastReason).toBe('change_unknown');
  });

  it('refuses when git gives no answer', () => {
    install({ requireChange: true });
    rmSync(join(repo, '.git'), { recursive: true });
    writeFileSync(join(repo, '.git'), 'gitdir: /nowhere\n');
    expect(stop().reason).toContain('could not be determined');
  });

  it('refuses an always failing check exactly 3 times, then lets go with the mark', () => {
    install({ requireChange: false, check: 'false' });
    for (let turn = 1; turn <= 3; turn += 1) {
      expect(stop().reason).toContain('status 1');
      expect(outcome()).toMatchObject({ blocks: turn, capped: false });
    }
    expect(stop()).toMatchObject({ status: 0, stdout: '' });
    expect(outcome()).toMatchObject({ blocks: 3, capped: true, lastReason: 'check_failed', lastExit: 1 });
  });

  it('leaves no mark for a passing check', () => {
    install({ requireChange: false, check: 'true' });
    expect(stop()).toMatchObject({ status: 0, stdout: '' });
    expect(outcome()).toMatchObject({ blocks: 0, passes: 1, capped: false });
  });

  it('gives back status and output of a failing check, also when it speaks of missing files', () => {
    install({ requireChange: false, check: 'echo "cannot open: no such file"; echo other >&2; exit 3' });
    expect(stop()).toMatchObject({ status: 0, reason: expect.stringMatching(/status 3[\s\S]*no such file\nother/) });
  });

  it('asks for one thing at a time: no check runs before there is a change', () => {
    install({ requireChange: true, check: `touch ${join(home, 'ran')}` });
    stop();
    expect(existsSync(join(home, 'ran'))).toBe(false);
  });

  it('runs a check with quotes, dollars, backquotes and backslashes as written, and nothing else', () => {
    const check = `printf '%s' "it's \\"quoted\\" \\\\ \\$HOME \\\`touch ${join(home, 'canary')}\\\`" >&2; exit 4`;
    install({ requireChange: false, check });
    const expected = execFileSync('/bin/sh', ['-c', `{ ${check.replace('; exit 4', '')}; } 2>&1`], { encoding: 'utf8' });
    expect(stop().reason).toContain(expected);
    expect(existsSync(join(home, 'canary'))).toBe(false);
  });

  it('shows no more than the end of a long output, with every character safe in JSON', () => {
    install({ requireChange: false, check: `printf 'ST''ART'; printf '%5000s' x | tr ' ' y; printf '\\033[2J\\001"\\\\\\tEND'; exit 1` });
    const { reason = '' } = stop();
    expect(reason).not.toContain('START');
    expect(reason).toContain('"\\\tEND');
    expect(reason.length).toBeLessThan(2500);
  });

  it('defers while background tasks run, and is not fooled by text that looks like one', () => {
    install({ requireChange: false, check: 'false' });
    expect(stop({ hook_event_name: 'Stop', background_tasks: [{ id: 'b1' }] })).toMatchObject({ status: 0, stdout: '' });
    expect(outcome().log).toBe('absent');
    expect(stop({ last_assistant_message: '"background_tasks":[{', background_tasks: [] }).reason).toContain('status 1');
  });

  it('ends with another status than 0 when it cannot work, which the settings turn into a refusal', () => {
    expect(stop().status).not.toBe(0);
  });

  it('counts a garbled counter as used up, so that a guest cannot hold an agent for ever', () => {
    install({ requireChange: false, check: 'false' });
    writeFileSync(join(home, 'state', 'blocks'), '-7; touch /tmp/x');
    expect(stop()).toMatchObject({ status: 0, stdout: '' });
    expect(outcome().capped).toBe(true);
  });

  it('writes nothing under the repository', () => {
    install({ requireChange: true, check: 'false' });
    writeFileSync(join(repo, 'new.txt'), 'n\n');
    const before = readdirSync(repo).sort();
    stop();
    expect(readdirSync(repo).sort()).toEqual(before);
  });
});

describe('the tool tap script', () => {
  const tap = (input: string): { status: number | null; stdout: string; stderr: string } =>
    spawnSync('/bin/sh', [join(home, 'tap-hook'), join(home, 'tap.jsonl')], { input, encoding: 'utf8' });

  it('appends one line for each event and says nothing', () => {
    for (const tool of ['Read', 'Edit']) expect(tap(`{"tool_name":"${tool}"}\n`)).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(drainTap(readFileSync(join(home, 'tap.jsonl')), 0).records.map((record) => record.tool)).toEqual(['Read', 'Edit']);
  });

  it('exits 0 when it cannot write', () => {
    rmSync(join(home, 'tap.jsonl'), { force: true });
    mkdirSync(join(home, 'tap.jsonl'));
    expect(tap('{}')).toMatchObject({ status: 0, stdout: '' });
  });

  it('contains no other exit status than 0', () => {
    expect(tapHookScript().match(/exit\s+\S+/g)).toEqual(['exit 0']);
  });

  it('cuts an event that is too long to one line of the limit', () => {
    tap(`{"tool_name":"Write","tool_input":{"content":"${'x'.repeat(TAP_EVENT_MAX_BYTES + 1000)}"}}`);
    tap('{"tool_name":"Read"}');
    const file = readFileSync(join(home, 'tap.jsonl'));
    expect(file.indexOf(0x0a)).toBe(TAP_EVENT_MAX_BYTES - 1);
    expect(drainTap(file, 0)).toMatchObject({ lines: 2, skippedLines: 1, records: [{ tool: 'Read' }] });
  });
});
