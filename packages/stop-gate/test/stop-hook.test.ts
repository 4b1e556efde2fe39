import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CHECK_FEEDBACK_BYTES, COMMAND_FEEDBACK_BYTES, MAX_HOOK_BLOCKS, planHookFiles, stopHookScript } from '../src/index.ts';
import { describeUnderShells, HookHome } from './hook-home.ts';

/** A shell word that stands for exactly this text. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const contents = (folder: string): string =>
  execFileSync('sh', ['-c', 'find . -type f -exec sha256sum {} + | sort; find . | sort'], { cwd: folder, encoding: 'utf8' });

describeUnderShells('the Stop hook', (shell) => {
  let home: HookHome;
  beforeEach(() => {
    home = new HookHome(shell);
  });
  afterEach(() => home.remove());

  describe('asks for a change', () => {
    beforeEach(() => home.install({ requireChange: true }));

    it('and refuses a clean tree at the base with a reason', () => {
      expect(home.stop()).toMatchObject({ status: 0, reason: expect.stringContaining('Nothing in the working tree') });
      expect(home.outcome()).toMatchObject({ verdict: 'blocked', blocks: 1, capped: false, lastReason: 'no_change' });
    });

    it.each<[string, () => void]>([
      ['an untracked file', () => home.write('new.txt', 'n\n')],
      ['a changed file', () => home.write('a.txt', 'b\n')],
      ['a removed file', () => rmSync(join(home.repo, 'a.txt'))],
      [
        'a commit on a clean tree',
        () => {
          home.write('a.txt', 'b\n');
          home.git('commit', '-q', '-a', '-m', 'work');
        },
      ],
      [
        'a commit on another branch',
        () => {
          home.git('checkout', '-q', '-b', 'other');
          home.git('commit', '-q', '--allow-empty', '-m', 'work');
        },
      ],
      [
        'an untracked file that the configuration hides from the status',
        () => {
          home.git('config', 'status.showUntrackedFiles', 'no');
          home.write('new.txt', 'n\n');
        },
      ],
    ])('and passes %s', (_what, work) => {
      work();
      expect(home.stop()).toMatchObject({ status: 0, stdout: '', stderr: '' });
      expect(home.outcome()).toMatchObject({ verdict: 'passed', passes: 1, blocks: 0 });
    });

    it.each<[string, () => void]>([
      ['the base is missing', () => rmSync(home.at('config', 'base'))],
      ['the base is empty', () => home.configure('base', '\n')],
      ['the base is no commit', () => home.configure('base', 'HEAD\n')],
      ['the base is not in the repository', () => home.configure('base', `${'1'.repeat(40)}\n`)],
      ['there is no repository', () => rmSync(join(home.repo, '.git'), { recursive: true })],
      [
        'git fails',
        () => {
          rmSync(join(home.repo, '.git'), { recursive: true });
          home.write('.git', 'gitdir: /nowhere\n');
        },
      ],
      ['HEAD is no commit', () => writeFileSync(join(home.repo, '.git', 'HEAD'), 'ref: refs/heads/none\n')],
      ['the index is damaged', () => writeFileSync(join(home.repo, '.git', 'index'), 'x')],
    ])('and refuses rather than passes when %s', (_what, harm) => {
      home.write('new.txt', 'n\n');
      harm();
      expect(home.stop().reason).toContain('could not be determined');
      expect(home.outcome()).toMatchObject({ verdict: 'blocked', lastReason: 'change_unknown' });
    });

    it('and looks at the workspace whatever repository the environment names', () => {
      home.write('new.txt', 'n\n');
      expect(home.stop(undefined, { GIT_DIR: '/nowhere', GIT_WORK_TREE: '/nowhere', GIT_INDEX_FILE: '/nowhere' })).toMatchObject({
        stdout: '',
      });
    });

    it('and writes nothing under the repository, not even what git keeps for itself', () => {
      home.write('new.txt', 'n\n');
      // A file whose time differs from what the index says, which git would note in the index.
      utimesSync(join(home.repo, 'a.txt'), 1, 1);
      const before = contents(home.repo);
      home.stop();
      expect(contents(home.repo)).toBe(before);
    });

    it('before it runs the check: one thing at a time', () => {
      home.install({ requireChange: true, check: `touch ${home.at('ran')}` });
      home.stop();
      expect(existsSync(home.at('ran'))).toBe(false);
      home.write('new.txt', 'n\n');
      home.stop();
      expect(existsSync(home.at('ran'))).toBe(true);
    });
  });

  it('refuses an always failing check exactly 3 times, then lets go with the mark', () => {
    home.install({ requireChange: false, check: 'false' });
    for (let turn = 1; turn <= MAX_HOOK_BLOCKS; turn += 1) {
      expect(home.stop().reason).toContain('status 1');
      expect(home.outcome()).toMatchObject({ verdict: 'blocked', blocks: turn, capped: false });
    }
    expect(home.stop()).toMatchObject({ status: 0, stdout: '' });
    expect(home.outcome()).toMatchObject({ verdict: 'capped', blocks: 3, capped: true, lastReason: 'check_failed', lastExit: 1 });
  });

  it('leaves no mark for a passing check, and takes the mark away when it passes after giving up', () => {
    home.install({ requireChange: false, check: 'test -e done' });
    for (let turn = 0; turn <= MAX_HOOK_BLOCKS; turn += 1) home.stop();
    expect(home.outcome().verdict).toBe('capped');
    home.write('done', '');
    expect(home.stop()).toMatchObject({ status: 0, stdout: '' });
    expect(home.outcome()).toMatchObject({ verdict: 'passed', blocks: 3, passes: 1, capped: false });
  });

  it('tells a pass at the fourth try from giving up', () => {
    home.install({ requireChange: false, check: 'test -e done' });
    for (let turn = 0; turn < MAX_HOOK_BLOCKS; turn += 1) home.stop();
    home.write('done', '');
    home.stop();
    expect(home.outcome()).toMatchObject({ verdict: 'passed', blocks: 3, capped: false });
  });

  it('gives back status and output of a failing check, also when it speaks of missing files', () => {
    home.install({ requireChange: false, check: 'echo "cannot open: no such file"; echo other >&2; exit 3' });
    expect(home.stop()).toMatchObject({ status: 0, reason: expect.stringMatching(/status 3[\s\S]*no such file\nother/) });
  });

  it('ends a check at its limit and says so; a check that exits like that by itself has failed', () => {
    home.install({ requireChange: false, check: 'exec sleep 30' }, { checkTimeoutS: 1 });
    expect(home.stop().reason).toContain('did not end within 1 seconds');
    expect(home.outcome().lastReason).toBe('check_timed_out');
    home.install({ requireChange: false, check: 'exit 124' });
    expect(home.stop().reason).toContain('status 124');
    expect(home.outcome().lastReason).toBe('check_failed');
  });

  it('bounds a check also where no timeout can be run', () => {
    const PATH = home.pathWith('timeout', '#!/bin/sh\nexit 127\n');
    home.install({ requireChange: false, check: 'exec sleep 30' }, { checkTimeoutS: 1 });
    expect(home.stop(undefined, { PATH }).reason).toContain('did not end within 1 seconds');
    expect(home.outcome().lastReason).toBe('check_timed_out');
    home.install({ requireChange: false, check: 'echo out; exit 7' });
    expect(home.stop(undefined, { PATH }).reason).toMatch(/status 7[\s\S]*out/);
    home.install({ requireChange: false, check: 'true' });
    expect(home.stop(undefined, { PATH })).toMatchObject({ status: 0, reason: undefined });
  });

  it('runs a check with quotes, dollars, backquotes and backslashes as written, and nothing else', () => {
    const check = `printf '%s' "it's \\"quoted\\" \\\\ \\$HOME \\\`touch ${home.at('canary')}\\\`" >&2; exit 4`;
    home.install({ requireChange: false, check });
    const expected = execFileSync('/bin/sh', ['-c', `{ ${check.replace('; exit 4', '')}; } 2>&1`], { encoding: 'utf8' });
    expect(home.stop().reason).toContain(expected);
    expect(existsSync(home.at('canary'))).toBe(false);
  });

  it('hands any text through every layer unchanged', () => {
    const text = fc.string({
      unit: fc.constantFrom(
        'a',
        ' ',
        "'",
        '"',
        '$',
        '`',
        '\\',
        '\n',
        '\t',
        '%',
        '{',
        '}',
        '(',
        ';',
        '&',
        '|',
        '<',
        '!',
        '#',
        '~',
        'é',
        '€',
        '😀',
      ),
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(text, (value) => {
        home.install({ requireChange: false, check: `printf '%s' ${quoted(`<<${value}>>`)}; exit 7` });
        rmSync(home.at('state', 'blocks'), { force: true });
        const { reason = '' } = home.stop();
        expect(reason.split('The end of its output:')[1]).toContain(`<<${value}>>`);
      }),
      { numRuns: 12 },
    );
  });

  it('answers in text that any reader of JSON takes, whatever bytes the check prints', () => {
    const bytes = fc.uint8Array({ minLength: CHECK_FEEDBACK_BYTES - 5, maxLength: CHECK_FEEDBACK_BYTES + 5 });
    const odd = fc.constantFrom([0xff, 0xfe], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0x00, 0x1b]);
    fc.assert(
      fc.property(bytes, odd, (noise, tail) => {
        home.install({ requireChange: false, check: 'cat noise; exit 1' });
        writeFileSync(join(home.repo, 'noise'), Buffer.concat([Buffer.from(noise), Buffer.from(tail), Buffer.from('END')]));
        rmSync(home.at('state', 'blocks'), { force: true });
        const { stdout, reason = '' } = home.stop();
        expect(/^[\x20-\x7e]+\n$/.test(stdout)).toBe(true);
        expect(reason).toContain('END');
        expect(reason).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ud800-\udfff]/u);
      }),
      { numRuns: 12 },
    );
  });

  it('shows no more than the start of a long command and the end of a long output', () => {
    home.install({ requireChange: false, check: `: '${'x'.repeat(5000)}'; printf 'ST''ART'; printf '%5000s' x; printf 'END'; exit 1` });
    const { reason = '' } = home.stop();
    expect(reason).not.toContain('START');
    expect(reason).toContain('END');
    expect(reason.length).toBeLessThan(CHECK_FEEDBACK_BYTES + COMMAND_FEEDBACK_BYTES + 300);
  });

  it('refuses by exit status 2 where that is asked for, with a word on standard output and the feedback on standard error', () => {
    home.install({ requireChange: false, check: "printf 'no such file \\033[2J'; exit 3" }, { answer: 'exit_2' });
    const stop = home.stop();
    expect(stop).toMatchObject({ status: 2, stdout: 'gate\n', stderr: expect.stringMatching(/status 3[\s\S]*no such file \[2J/) });
    for (let turn = 1; turn < MAX_HOOK_BLOCKS; turn += 1) expect(home.stop().status).toBe(2);
    expect(home.stop()).toMatchObject({ status: 0, stdout: '' });
    expect(home.outcome().verdict).toBe('capped');
  });

  it('defers while background tasks run, and is not fooled by text that looks like one', () => {
    home.install({ requireChange: false, check: 'false' });
    expect(home.stop({ hook_event_name: 'Stop', background_tasks: [{ id: 'b1' }] })).toMatchObject({ status: 0, stdout: '' });
    expect(home.outcome()).toMatchObject({ verdict: 'not_called', log: 'absent' });
    expect(home.stop({ last_assistant_message: '"background_tasks":[{', background_tasks: [] }).reason).toContain('status 1');
  });

  it.each<[string, () => void]>([
    ['there is no configuration', () => rmSync(home.at('config'), { recursive: true })],
    ['the limit of refusals is no number', () => home.configure('maxBlocks', 'many\n')],
    ['the time limit is no number', () => home.configure('checkTimeout', '-1\n')],
    ['the workspace is gone', () => rmSync(home.repo, { recursive: true })],
    ['the state folder is gone', () => rmSync(home.at('state'), { recursive: true })],
  ])('ends with another status than 0 when %s, which the settings turn into a refusal', (_what, harm) => {
    home.install({ requireChange: false, check: 'false' });
    harm();
    expect(home.stop().status).not.toBe(0);
  });

  it('counts a garbled counter as used up, so that a guest cannot hold an agent for ever', () => {
    home.install({ requireChange: false, check: 'false' });
    writeFileSync(home.at('state', 'blocks'), '-7; touch /tmp/x');
    expect(home.stop()).toMatchObject({ status: 0, stdout: '' });
    expect(home.outcome()).toMatchObject({ verdict: 'capped', capped: true });
  });
});

describe('the files of the Stop hook', () => {
  const gate = { requireChange: true, check: "it's `odd` $x" };
  const workspace = '/workspace';

  it('hold the check as it is, and the script holds nothing of it', () => {
    const files = planHookFiles({ gate, workspace, baseCommit: 'a'.repeat(40) });
    expect(Object.fromEntries(files.map((file) => [file.name, file.text]))).toEqual({
      workspace: '/workspace\n',
      'max-blocks': '3\n',
      'check-timeout': '540\n',
      answer: 'json\n',
      'require-change': '',
      base: `${'a'.repeat(40)}\n`,
      check: "it's `odd` $x\n",
    });
    expect(stopHookScript()).not.toContain('odd');
  });

  it.each([
    ['a relative workspace', { workspace: 'work' }],
    ['a workspace of two lines', { workspace: '/a\n/b' }],
    ['a base that is no commit id', { baseCommit: 'HEAD' }],
    ['no refusals', { maxBlocks: 0 }],
    ['more refusals than two digits', { maxBlocks: 100 }],
    ['no time for the check', { checkTimeoutS: 0 }],
    ['more time for the check than the hook has', { checkTimeoutS: 541 }],
  ])('cannot hold %s', (_what, over) => {
    expect(() => planHookFiles({ gate, workspace, ...over })).toThrow(expect.objectContaining({ code: 'hook_invalid' }));
  });

  it('say nothing that another shell than a POSIX one would need', () => {
    expect(stopHookScript()).not.toMatch(/\[\[|<<<|\bfunction \w+ *\{|\blocal\b|&>|\$'/);
    expect(readFileSync(new URL('../src/stop-hook-text.ts', import.meta.url), 'utf8')).not.toMatch(/pipefail/);
  });
});
