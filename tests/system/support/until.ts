import { setTimeout as delay } from 'node:timers/promises';

const LOOK_EVERY_MS = 50;

/** Waits until `look` gives something else than undefined or false; the error says what was waited for. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 30_000,
): Promise<T> {
  const end = performance.now() + withinMs;
  let last: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain for: ${what}`, { cause: last });
    await delay(LOOK_EVERY_MS);
  }
}
