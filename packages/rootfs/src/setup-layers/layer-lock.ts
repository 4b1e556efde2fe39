import { lstatSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type HostLock, tryHostLock } from '@firecrew/base';
import type { LayerKey } from './layer-key.ts';

/** Digits of a key in the name of its lock: the name of a socket has at most 107 bytes. */
const KEY_DIGITS = 32;
/** Least pause between two tries, in `ms`: a stranger that has the name may close at once. */
const PAUSE_MS = 50;

/**
 * Takes the right to build a layer, which one process of the host has at a time; waits for the one that has it, at most `timeoutMs`, and gives
 * undefined then. It goes with its process, however that ends. Rejects when `signal` fires.
 */
export async function takeLayerLock(
  root: string,
  key: LayerKey,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<HostLock | undefined> {
  const name = lockName(root, key);
  const until = performance.now() + timeoutMs;
  for (;;) {
    signal.throwIfAborted();
    const lock = await tryHostLock(name);
    if (lock !== undefined) return lock;
    const leftMs = until - performance.now();
    if (leftMs <= 0) return undefined;
    const over = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(leftMs))]);
    await holderGone(name, over);
    await delay(Math.min(PAUSE_MS, leftMs), undefined, { signal });
  }
}

function lockName(root: string, key: LayerKey): string {
  const { dev, ino } = lstatSync(root);
  return `\0firecrew-layer/${process.getuid?.() ?? 0}/${dev}/${ino}/${key.slice(0, KEY_DIGITS)}`;
}

/** Settles when the holder has let go, or the signal fires. */
function holderGone(name: string, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(name);
    const end = (): void => {
      over.removeEventListener('abort', end);
      socket.destroy();
      resolve();
    };
    if (over.aborted) return end();
    over.addEventListener('abort', end, { once: true });
    socket.on('error', end);
    socket.on('close', end);
    socket.resume();
  });
}
