import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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
    return new LoginRefresher({ command: ['x'], everyMs: 10_000, run, onNew: () => void told.push('new'), log, now: () => 0 });
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
      expect(told).toEqual(['new', { level: 50, detail: 'no network', failures: 1, msg: 'the login of a model route failed' }]);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await login.current()).toBe('sk-of-another-day');
      login.stop();
      await vi.advanceTimersByTimeAsync(100_000);
      expect(told.at(-1)).toBe('new');
    } finally {
      vi.useRealTimers();
    }
  });
});
