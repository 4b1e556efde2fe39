import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { takeLayerLock } from '../../src/index.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
const KEY = 'a'.repeat(64);
const OTHER = 'b'.repeat(64);
const PATIENT = { signal: new AbortController().signal, timeoutMs: 60_000 };
const AT_ONCE = { ...PATIENT, timeoutMs: 0 };

let holder: ChildProcess | undefined;
afterEach(() => {
  holder?.kill('SIGKILL');
  holder = undefined;
});

/** Sockets of this host that bear a name: the one that listens, and its end of each connection. */
function socketsNamed(name: string): number {
  return readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .filter((line) => line.endsWith(name.replace('\0', '@'))).length;
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Another process that takes a lock and keeps it. */
async function holdElsewhere(root: string, key: string): Promise<ChildProcess> {
  const module = new URL('../../dist/setup-layers/layer-lock.js', import.meta.url).href;
  const code = `const { takeLayerLock } = await import(${JSON.stringify(module)});
    await takeLayerLock(${JSON.stringify(root)}, ${JSON.stringify(key)}, { signal: new AbortController().signal, timeoutMs: 0 });
    console.log('held');`;
  holder = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (holder.stdout === null) throw new Error('no output');
  await once(holder.stdout, 'data');
  return holder;
}

describe('the right to build a layer', () => {
  it('is one process of the host at a time for a key, and each store and key has its own', async () => {
    await mkdir(at('other'));
    const lock = await takeLayerLock(at(), KEY, AT_ONCE);
    expect(lock).toBeDefined();
    expect(await takeLayerLock(at(), KEY, AT_ONCE)).toBeUndefined();
    for (const [root, key] of [
      [at(), OTHER],
      [at('other'), KEY],
    ] as const) {
      const free = await takeLayerLock(root, key, AT_ONCE);
      expect(free).toBeDefined();
      free?.release();
    }
    lock?.release();
  });

  it('goes to one of those that wait once its holder has let go', async () => {
    const lock = await takeLayerLock(at(), KEY, AT_ONCE);
    const order: string[] = [];
    const waits = ['one', 'another'].map(async (who) => {
      const mine = await takeLayerLock(at(), KEY, PATIENT);
      order.push(who);
      // Nobody else has it before it is let go.
      expect(await takeLayerLock(at(), KEY, AT_ONCE)).toBeUndefined();
      mine?.release();
    });
    // Both wait at the holder, which has taken their connections.
    while (socketsNamed(lock?.name ?? '') < 3) await nextTurn();
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect(order).toEqual([]);
    lock?.release();
    await Promise.all(waits);
    expect(order.sort()).toEqual(['another', 'one']);
  });

  it('is free as soon as its holder is dead, and nothing is left of it', async () => {
    const child = await holdElsewhere(at(), KEY);
    expect(await takeLayerLock(at(), KEY, AT_ONCE)).toBeUndefined();
    const waiting = takeLayerLock(at(), KEY, PATIENT);
    child.kill('SIGKILL');
    const lock = await waiting;
    expect(lock).toBeDefined();
    lock?.release();
  });

  it('is waited for no longer than one may, and not beyond an abort', async () => {
    const lock = await takeLayerLock(at(), KEY, AT_ONCE);
    expect(await takeLayerLock(at(), KEY, { ...PATIENT, timeoutMs: 1 })).toBeUndefined();
    const abort = new AbortController();
    const waiting = takeLayerLock(at(), KEY, { ...PATIENT, signal: abort.signal });
    abort.abort(new Error('called off'));
    await expect(waiting).rejects.toThrow();
    lock?.release();
  });
});
