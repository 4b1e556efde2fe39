import { setTimeout as delay } from 'node:timers/promises';
import { POLL_MS } from './limits.ts';

/** Looks at `condition` until it holds (true) or `timeoutMs` is over (false). */
export async function waitUntil(condition: () => boolean | Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() >= end) return false;
    await delay(POLL_MS);
  }
  return true;
}
