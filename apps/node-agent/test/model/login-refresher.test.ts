import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { credentialDigest } from '../../src/broker/broker-messages.ts';
import { LoginRefresher } from '../../src/model/login-refresher.ts';
import { runLogin } from '../../src/model/run-login.ts';

const SECRET = 'sk-0123456789';
const FOREVER = new AbortController().signal;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-login-'));
});
afterEach(async () => await rm(folder, { recursive: true }));

const shell = (script: string): readonly string[] => ['/bin/sh', '-c', script];
const failure = async (command: readonly string[], timeoutMs?: number, signal = FOREVER): Promise<unknown> =>
  await runLogin(command, signal, timeoutMs).catch((error: unknown) => error);

describe('the command of a login', () => {
  it('prints a credential', async () => {
    expect(await runLogin(shell(`echo ${SECRET}`), FOREVER)).toEqual({ credential: SECRET, expiresAtMs: null });
  });

  it.each([
    ['ends with 3', shell(`echo ${SECRET}; echo ${SECRET} >&2; exit 3`)],
    ['printed no credential', shell(`echo ${SECRET} ${SECRET}`)],
    ['printed no credential', shell('true')],
    ['ended with SIGTERM', shell(`echo ${SECRET}; kill $$`)],
    ['wrote more than', shell(`while :; do echo ${SECRET}; done`)],
    ['cannot be started', ['/nowhere/at/all']],
  ])('that %s fails, and nothing of its output is said', async (why, command) => {
    const error = await failure(command);
    expect(error).toMatchObject({ code: 'model_login_failed', message: expect.stringContaining(why.replace('ends', 'ended')) });
    expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain(SECRET);
  });

  it.each(['its time', 'whoever waited'])('is ended with all that it started, when %s is gone', async (which) => {
    const stop = new AbortController();
    const command = shell(`sleep 1000 & echo $! > ${folder}/pid; wait`);
    const failed = failure(command, which === 'its time' ? 3_000 : undefined, stop.signal);
    const pid = await vi.waitFor(async () => Number((await readFile(join(folder, 'pid'), 'utf8')).trim() || Number.NaN), 10_000);
    expect(pid).toBeGreaterThan(1);
    if (which !== 'its time') stop.abort();
    expect(await failed).toMatchObject({ code: 'model_login_failed' });
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), 10_000);
  });
});

describe('a login', () => {
  const refresherOf = (run: () => Promise<{ credential: string; expiresAtMs: number | null }>, told: unknown[] = []) => {
    const log = pino({ base: null, timestamp: false }, { write: (line: string) => void told.push(JSON.parse(line)) });
    return new LoginRefresher({
      command: ['x'],
      everyMs: 10_000,
      run,
      onChange: () => void told.push('changed'),
      log,
      now: () => 0,
      clock: () => Date.now(),
    });
  };

  it('runs once, however many ask at once', async () => {
    let runs = 0;
    const login = refresherOf(async () => {
      runs += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { credential: SECRET, expiresAtMs: null };
    });
    expect(await Promise.all(Array.from({ length: 20 }, () => login.current()))).toEqual(Array(20).fill(SECRET));
    expect(await login.current()).toBe(SECRET);
    login.stop();
    expect(runs).toBe(1);
  });

  it('keeps its credential when the next run fails, says so without it, and tries again', async () => {
    vi.useFakeTimers();
    try {
      const answers = [
        async () => ({ credential: SECRET, expiresAtMs: 4_000 }),
        async () => Promise.reject(new Error('no network')),
        async () => ({ credential: 'sk-of-another-day', expiresAtMs: null }),
      ];
      const told: unknown[] = [];
      const login = refresherOf(async () => await (answers.shift() ?? (() => Promise.reject(new Error('asked too often'))))(), told);
      expect(await login.current()).toBe(SECRET);
      await vi.advanceTimersByTimeAsync(3_000);
      expect(await login.current()).toBe(SECRET);
      expect(told).toEqual(['changed', { level: 50, detail: 'no network', failures: 1, msg: 'the login of a model route failed' }]);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await login.current()).toBe('sk-of-another-day');
      login.stop();
      await vi.advanceTimersByTimeAsync(100_000);
      expect(told.at(-1)).toBe('changed');
    } finally {
      vi.useRealTimers();
    }
  });

  describe('whose credential the provider refuses', () => {
    const [OLD, NEW] = ['sk-of-yesterday', 'sk-of-today-0123'];
    const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);
    let told: unknown[];
    let runs: number;
    /** What the runs give, one after the other; the last one again and again. */
    let answers: (string | Error)[];
    let login: LoginRefresher;
    beforeEach(async () => {
      vi.useFakeTimers();
      [told, runs, answers] = [[], 0, [OLD]];
      login = refresherOf(async () => {
        runs += 1;
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        if (answer instanceof Error) throw answer;
        return { credential: answer ?? '', expiresAtMs: null };
      }, told);
      await login.current();
      told.length = 0;
    });
    afterEach(() => {
      login.stop();
      vi.useRealTimers();
    });

    it('runs once for a hundred refusals, and gives the new one', async () => {
      answers = [NEW];
      await later(5_000);
      for (let count = 0; count < 100; count += 1) login.refused(credentialDigest(OLD));
      // Not sooner than 10 s after the run before, which is when it would have run anyway.
      expect(runs).toBe(1);
      await later(5_000);
      expect(runs).toBe(2);
      expect(await login.current()).toBe(NEW);
      expect(login.isRenewable).toBe(true);
      for (let count = 0; count < 100; count += 1) login.refused(credentialDigest(OLD));
      await later(9_999);
      expect(runs).toBe(2);
      expect(JSON.stringify(told)).not.toMatch(/sk-of/);
    });

    it('runs at once where the run before is long past, and never again for the same one', async () => {
      login.stop();
      const [clock, log] = [{ now: 0 }, pino({ level: 'silent' })];
      const run = async () => {
        runs += 1;
        return { credential: OLD, expiresAtMs: null };
      };
      login = new LoginRefresher({
        command: ['x'],
        everyMs: 1e9,
        run,
        onChange: () => void told.push('changed'),
        log,
        clock: () => clock.now,
      });
      await login.current();
      [runs, told.length, clock.now] = [0, 0, 60_000];
      expect(login.isRenewable).toBe(true);
      login.refused(credentialDigest(OLD));
      expect(login.isRenewable).toBe(true);
      await later(0);
      // It gave the same one: that is told, so that nobody waits for another.
      expect([runs, login.isRenewable, told]).toEqual([1, false, ['changed']]);
      clock.now = 1e6;
      login.refused(credentialDigest(OLD));
      await later(60_000);
      expect(runs).toBe(1);
    });

    it('keeps it where the run fails, and says so', async () => {
      answers = [new Error('no network')];
      login.refused(credentialDigest(OLD));
      await later(10_000);
      expect(await login.current()).toBe(OLD);
      expect(login.isRenewable).toBe(false);
      expect(told).toEqual([
        { level: 40, delayMs: 10_000, msg: 'the provider refused the credential of a login, which is run again' },
        { level: 50, detail: 'no network', failures: 1, msg: 'the login of a model route failed' },
        'changed',
      ]);
    });

    it('takes no notice of one that nobody has', async () => {
      login.refused(credentialDigest('sk-of-somebody-else'));
      await later(9_999);
      expect([runs, told]).toEqual([1, []]);
    });

    it('runs no more once it is stopped', async () => {
      login.refused(credentialDigest(OLD));
      login.stop();
      await later(100_000);
      expect(runs).toBe(1);
    });
  });
});
