import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identifyProcess } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askHolder, isSupervisorOf, lockName, takeLock } from '../src/supervisor/start-lock.ts';

let folder: string;
let squatter: Server | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-lock-'));
});
afterEach(() => {
  squatter?.close();
  squatter = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const own = () => {
  const identity = identifyProcess(process.pid);
  if (identity === undefined) throw new Error('this process cannot be identified');
  return { homeId: 'home_a', ...identity };
};
const trusting = (): boolean => true;

async function squat(answer: string): Promise<string> {
  const name = lockName(folder, 0);
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.end(answer);
  });
  squatter = server;
  await new Promise<void>((resolve) => server.listen(name, () => resolve()));
  return name;
}

describe('the start lock', () => {
  it('is held by one, who says which home it supervises', async () => {
    const name = lockName(folder, 0);
    expect(await askHolder(name, 'home_a', folder, trusting)).toEqual({ kind: 'none' });
    const lock = await takeLock(name, own());
    expect(await takeLock(name, own())).toBeUndefined();
    expect(await askHolder(name, 'home_a', folder, trusting)).toEqual({ kind: 'holder', holder: own() });
    await lock?.release();
    const again = await takeLock(name, own());
    expect(again).toBeDefined();
    await again?.release();
  });

  it('is another one for another folder or account', () => {
    const other = mkdtempSync(join(tmpdir(), 'fc-lock-'));
    expect(new Set([lockName(folder, 0), lockName(folder, 1), lockName(other, 0)]).size).toBe(3);
    rmSync(other, { recursive: true });
  });

  it.each([
    ['another home', JSON.stringify({ homeId: 'home_b', pid: 1, startTicks: '1', bootId: 'x' })],
    ['nothing', ''],
    ['no JSON', 'hello'],
    ['without end', 'x'.repeat(100_000)],
  ])('is not believed from one who says %s', async (_what, answer) => {
    expect(await askHolder(await squat(answer), 'home_a', folder, trusting)).toEqual({ kind: 'unknown' });
  });

  it('is asked for again when its holder ends in the middle of its answer', async () => {
    const name = lockName(folder, 1);
    let dying: Server | undefined = createServer((socket) => {
      socket.end('{"homeId":"home_a",');
      dying?.close();
      dying = undefined;
    });
    await once(dying.listen(name), 'listening');
    expect(await askHolder(name, 'home_a', folder, trusting)).toEqual({ kind: 'none' });
  });

  it('is not believed from one who names a process that is no supervisor of this home', async () => {
    const name = await squat(JSON.stringify(own()));
    expect(await askHolder(name, 'home_a', folder)).toEqual({ kind: 'unknown' });
    expect(isSupervisorOf(own(), folder)).toBe(false);
    expect(isSupervisorOf({ ...own(), startTicks: '1' }, folder)).toBe(false);
  });
});
