import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { ChangeFeed } from '../../src/http/change-feed.ts';

const LONG_MS = 60_000;

describe('a watch of the change feed', () => {
  it('wakes its reader at a change, at its time, or when the reader is gone, and leaves nothing on the reader', async () => {
    const feed = new ChangeFeed();
    const watch = feed.watch('mis_1', ['log', 'events']);
    const gone = new AbortController();
    for (let turn = 0; turn < 3; turn += 1) {
      const waiting = watch.next(LONG_MS, gone.signal);
      feed.wakeAll();
      await waiting;
    }
    await watch.next(1, gone.signal);
    expect(getEventListeners(gone.signal, 'abort')).toEqual([]);
    const waiting = watch.next(LONG_MS, gone.signal);
    gone.abort();
    await waiting;
    expect(getEventListeners(gone.signal, 'abort')).toEqual([]);
    watch.stop();
    feed.wakeAll();
  });

  it('does not miss a change between two waits', async () => {
    const feed = new ChangeFeed();
    const watch = feed.watch('mis_1', ['log']);
    feed.wakeAll();
    await watch.next(LONG_MS, new AbortController().signal);
    watch.stop();
  });
});
