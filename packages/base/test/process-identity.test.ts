import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { identifyProcess, isAlive, signalProcess } from '../src/index.ts';

describe('the identity of a process', () => {
  it('holds while it runs and no longer', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' });
    const identity = identifyProcess(child.pid ?? 0);
    if (identity === undefined) throw new Error('the child is not there');
    expect(isAlive(identity)).toBe(true);
    const ended = once(child, 'exit');
    expect(signalProcess(identity, 'SIGKILL')).toBe(true);
    await ended;
    expect(isAlive(identity)).toBe(false);
    expect(signalProcess(identity, 'SIGKILL')).toBe(false);
  });

  it('is not that of another process with the same pid', () => {
    const own = identifyProcess(process.pid);
    if (own === undefined) throw new Error('this process is not there');
    expect(isAlive({ ...own, startTicks: '1' })).toBe(false);
    expect(isAlive({ ...own, bootId: 'another boot' })).toBe(false);
    expect(signalProcess({ ...own, startTicks: '1' }, 'SIGKILL')).toBe(false);
  });

  it('is none for a pid that is free', () => {
    expect(identifyProcess(2 ** 22 + 1)).toBeUndefined();
  });
});
