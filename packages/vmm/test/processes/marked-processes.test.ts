import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { findMarked, killMarked } from '../../src/index.ts';

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

async function sleeper(env: Record<string, string>): Promise<number> {
  const child = spawn('/bin/sleep', ['4720'], { env, stdio: 'ignore' });
  started.push(child);
  await once(child, 'spawn');
  return child.pid ?? 0;
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

describe('marked processes', () => {
  it('are found by the whole value, as the first variable and as a later one', async () => {
    const mark = randomUUID();
    const first = await sleeper({ FIRECREW_ATTEMPT: mark, OTHER: 'x' });
    const later = await sleeper({ OTHER: 'x', FIRECREW_ATTEMPT: mark });
    await sleeper({ FIRECREW_ATTEMPT: `${mark}x` });
    await sleeper({ XFIRECREW_ATTEMPT: mark });
    expect(findMarked(mark).sort()).toEqual([first, later].sort());
    expect(findMarked(mark, 'OTHER')).toEqual([]);
  });

  it('are killed, and others are not', async () => {
    const mark = randomUUID();
    const marked = await sleeper({ FIRECREW_ATTEMPT: mark });
    const other = await sleeper({ FIRECREW_ATTEMPT: `${mark}x` });
    expect(await killMarked(mark)).toEqual({ killed: [marked], left: [] });
    expect(findMarked(`${mark}x`)).toEqual([other]);
  });

  it('that start others while they are killed are all caught', async () => {
    const mark = randomUUID();
    const forker = 'while :; do (sleep 4721 & sleep 0.005) & sleep 0.005; done';
    const child = spawn('/bin/sh', ['-c', forker], { env: { PATH: '/usr/bin:/bin', FIRECREW_ATTEMPT: mark }, stdio: 'ignore' });
    started.push(child);
    // Those that last: others may end by themselves between two looks.
    const lasting = () => findMarked(mark).filter((pid) => commandLine(pid).includes('sleep\x004721'));
    while (lasting().length < 10) await new Promise((resume) => setImmediate(resume));
    const { killed, left } = await killMarked(mark);
    expect(killed.length).toBeGreaterThanOrEqual(10);
    expect([left, findMarked(mark)]).toEqual([[], []]);
  });

  it('that do not exist leave nothing to kill', async () => {
    expect(await killMarked(randomUUID())).toEqual({ killed: [], left: [] });
  });
});
