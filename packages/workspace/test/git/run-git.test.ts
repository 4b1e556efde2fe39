import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clampBothEnds, GIT_TEXT_MAX_CHARS, type GitOptions, redactGitText, runGit } from '../../src/git/index.ts';
import { git, personRepository, put, type Scratch, scratch } from './scratch.ts';

let place: Scratch;
beforeEach(() => {
  place = scratch();
});
afterEach(() => place.remove());

/** A killed process that nobody has waited for yet is a zombie, not a running one. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

const LIMITS: GitOptions = { timeoutMs: 30_000, maxOutputBytes: 1 << 20 };

describe('one call of git', () => {
  it('gives bytes, and fails with exit code and text', async () => {
    const head = personRepository(place.path('r'), { a: '\xff\0' });
    const gitDir = place.path('r/.git');
    expect((await runGit(['rev-parse', 'HEAD'], { ...LIMITS, gitDir })).stdout.toString()).toBe(`${head}\n`);
    await expect(runGit(['rev-parse', '--verify', 'absent'], { ...LIMITS, gitDir })).rejects.toMatchObject({
      code: 'git_failed',
      message: expect.stringMatching(/rev-parse failed with exit code 128: fatal: Needed a single revision/),
    });
    expect(await runGit(['rev-parse', '--verify', 'absent'], { ...LIMITS, gitDir, exitCodes: [128] })).toMatchObject({ exitCode: 128 });
  });

  it('sees neither configuration nor variables of the machine and the person', async () => {
    personRepository(place.path('r'), { a: '1' });
    const { stdout } = await runGit(['config', '--list', '--show-scope'], { ...LIMITS, gitDir: place.path('r/.git') });
    const scopes = new Set(
      stdout
        .toString()
        .trim()
        .split('\n')
        .map((line) => line.split('\t')[0]),
    );
    expect([...scopes].sort()).toEqual(['command', 'local']);
    const { stdout: variables } = await runGit(['-c', 'alias.variables=!env', 'variables'], { ...LIMITS, gitDir: place.path('r/.git') });
    const names = variables
      .toString()
      .split('\n')
      .map((line) => line.split('=')[0] ?? '');
    expect(Object.keys(process.env).filter((name) => names.includes(name) && !/^(?:PATH|HOME|PWD|LC_ALL|SHLVL|_)$/.test(name))).toEqual([]);
    expect(variables.toString()).toContain('HOME=/nonexistent');
  });

  it('is ended, with all it started, when its time is over', async () => {
    const pidFile = place.path('pid');
    const call = runGit(['-c', `alias.hang=!sh -c 'echo $$ > ${pidFile}; sleep 600 & wait'`, 'hang'], {
      ...LIMITS,
      cwd: place.dir,
      timeoutMs: 1500,
    });
    await expect(call).rejects.toMatchObject({ code: 'git_timed_out' });
    const pid = Number(readFileSync(pidFile, 'utf8'));
    await expect.poll(() => isRunning(pid)).toBe(false);
  });

  it('does not wait for a child that outlives it and holds its pipes', async () => {
    const { stdout } = await runGit(['-c', 'alias.leave=!echo done; sleep 600 &', 'leave'], { ...LIMITS, cwd: place.dir });
    expect(stdout.toString()).toBe('done\n');
  });

  it('is ended at its output limit, which is exact', async () => {
    personRepository(place.path('r'), { a: 'x'.repeat(1000) });
    const show = (maxOutputBytes: number, onTooMuchOutput: 'fail' | 'truncate') =>
      runGit(['cat-file', 'blob', 'HEAD:a'], { ...LIMITS, gitDir: place.path('r/.git'), maxOutputBytes, onTooMuchOutput });
    expect(await show(1000, 'fail')).toMatchObject({ truncated: false });
    await expect(show(999, 'fail')).rejects.toMatchObject({ code: 'git_output_too_large' });
    const cut = await show(999, 'truncate');
    expect(cut.truncated).toBe(true);
    expect(cut.stdout).toHaveLength(999);
  });

  it('can be cancelled, and hands on the error of its input', async () => {
    const abort = new AbortController();
    const call = runGit(['-c', 'alias.hang=!sleep 600', 'hang'], { ...LIMITS, cwd: place.dir, signal: abort.signal });
    abort.abort();
    await expect(call).rejects.toMatchObject({ code: 'git_cancelled' });
    // biome-ignore lint/correctness/useYield: the source fails before its first chunk
    async function* broken(): AsyncGenerator<Uint8Array> {
      throw new Error('source broke');
    }
    await expect(runGit(['hash-object', '--stdin'], { ...LIMITS, cwd: place.dir, input: broken() })).rejects.toThrow('source broke');
  });

  it('explains by its exit, and not by the pipe, why git reads no more of a stream', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) yield await Promise.resolve(Buffer.alloc(1 << 20));
    }
    const options = { ...LIMITS, cwd: place.dir, input: endless() };
    await expect(runGit(['no-such-command'], options)).rejects.toMatchObject({
      code: 'git_failed',
      message: expect.stringContaining('no-such'),
    });
  });

  it('survives input that git does not read', async () => {
    await expect(runGit(['version'], { ...LIMITS, cwd: place.dir, input: Buffer.alloc(1 << 22) })).resolves.toMatchObject({ exitCode: 0 });
  });

  it('uses no transport that was not allowed', async () => {
    personRepository(place.path('r'), { a: '1' });
    await expect(runGit(['ls-remote', '--', place.path('r')], { ...LIMITS, cwd: place.dir })).rejects.toMatchObject({
      code: 'git_failed',
      message: expect.stringContaining("transport 'file' not allowed"),
    });
    await expect(runGit(['ls-remote', '--', place.path('r')], { ...LIMITS, cwd: place.dir, protocols: ['file'] })).resolves.toMatchObject({
      exitCode: 0,
    });
  });

  it('does not take a folder that looks like a repository for one', async () => {
    const inner = place.path('r/vendor.git');
    personRepository(place.path('r'), { a: '1' });
    git(place.dir, ['init', '-q', '--bare', inner]);
    await expect(runGit(['rev-parse', '--git-dir'], { ...LIMITS, cwd: inner })).rejects.toMatchObject({ code: 'git_failed' });
  });

  it('writes to a new file alone', async () => {
    personRepository(place.path('r'), { a: '12' });
    const options = { ...LIMITS, gitDir: place.path('r/.git'), outFile: place.path('out') };
    await runGit(['cat-file', 'blob', 'HEAD:a'], options);
    expect(readFileSync(place.path('out'), 'utf8')).toBe('12');
    await expect(runGit(['cat-file', 'blob', 'HEAD:a'], options)).rejects.toMatchObject({ code: 'EEXIST' });
  });

  it('keeps secrets out of its errors', async () => {
    put(place.dir, 'x', 'x');
    const call = runGit(['rev-parse', '--verify', 'https://user:hunter2@host/x s3cret'], {
      ...LIMITS,
      cwd: place.dir,
      gitDir: place.path('absent'),
      secrets: ['s3cret'],
    });
    const error: unknown = await call.catch((caught: unknown) => caught);
    expect(String(error)).not.toMatch(/hunter2|s3cret/);
    expect(readdirSync(place.dir)).toEqual(['x']);
  });
});

describe('the prose of git', () => {
  it.each([
    ['fatal: https://user:pw@host/x', 'fatal: https://***@host/x'],
    ['Authorization: Basic abc\nnext', 'Authorization: ***\nnext'],
    ['token=abc def', 'token=*** def'],
    ['a\u001b[31mb\u0007', 'a [31mb'],
  ])('%j is shown as %j', (given, shown) => {
    expect(redactGitText(given)).toBe(shown);
  });

  it('keeps both ends when it is long', () => {
    const long = `first ${'x'.repeat(5000)} last`;
    const cut = clampBothEnds(long);
    expect(cut.length).toBeLessThanOrEqual(GIT_TEXT_MAX_CHARS);
    expect(cut.startsWith('first ')).toBe(true);
    expect(cut.endsWith(' last')).toBe(true);
    expect(clampBothEnds('x'.repeat(GIT_TEXT_MAX_CHARS))).toHaveLength(GIT_TEXT_MAX_CHARS);
  });
});
