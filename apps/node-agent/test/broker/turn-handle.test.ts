import { describe, expect, it } from 'vitest';
import { restartDelayMs } from '../../src/broker/restart-delay.ts';
import { TurnHandle } from '../../src/broker/turn-handle.ts';

function makeHandles(hasRoute = true) {
  const calls: string[] = [];
  let opened = 0;
  return {
    calls,
    open: (route: string, validUntilMs: number) => {
      if (!hasRoute) return undefined;
      opened += 1;
      calls.push(`open ${route} ${validUntilMs}`);
      return `h${opened}`;
    },
    renew: (handle: string, validUntilMs: number) => void calls.push(`renew ${handle} ${validUntilMs}`),
    close: (handle: string) => void calls.push(`close ${handle}`),
  };
}

describe('the handle of a turn', () => {
  it('is one, given until the shim has it, kept up with the lease, and taken away for good', async () => {
    const handles = makeHandles();
    const handle = new TurnHandle(handles, 'command');
    const given: string[] = [];
    await handle.give(10, async () => await Promise.reject(new Error('the shim is silent')));
    for (const _ of [1, 2]) await handle.give(20, async (text) => void given.push(text));
    handle.renew(30);
    handle.revoke();
    await handle.give(40, async (text) => void given.push(text));
    expect(given).toEqual(['h1']);
    expect(handles.calls).toEqual(['open command 10', 'renew h1 30', 'close h1']);
  });

  it('that was revoked before there was one is never made', async () => {
    const handles = makeHandles();
    const handle = new TurnHandle(handles, 'command');
    handle.revoke();
    await handle.give(10, async () => await Promise.reject(new Error('asked')));
    expect(handles.calls).toEqual([]);
  });

  it('of a backend without a route is none', async () => {
    const handles = makeHandles(false);
    const handle = new TurnHandle(handles, 'command');
    await handle.give(10, async () => await Promise.reject(new Error('asked')));
    handle.renew(20);
    handle.revoke();
    expect(handles.calls).toEqual([]);
  });
});

describe('a broker that ends', () => {
  it.each([
    [0, 100],
    [1, 200],
    [2, 400],
    [5, 3_200],
    [6, 5_000],
    [1_000, 5_000],
  ])('for the %i. time in a row before it had settled is started again after %i ms', (earlyEnds, delayMs) => {
    expect(restartDelayMs(earlyEnds)).toBe(delayMs);
  });
});
