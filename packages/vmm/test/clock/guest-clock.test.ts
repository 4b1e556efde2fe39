import type { LinkEnd, LinkSession } from '@firecrew/link';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GuestClock } from '../../src/clock/guest-clock.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A guest whose clock is off, and a session that lives until `end`. */
function guestOf(offMs: number | undefined) {
  const added: number[] = [];
  let off = offMs;
  let looks = 0;
  let end = (): void => undefined;
  const closed = new Promise<LinkEnd>((resolve) => {
    end = () => resolve({ code: 'link_lost', message: 'over' });
  });
  // cast: nothing else of a session is looked at
  const session = { closed } as LinkSession;
  const ask = async (_session: LinkSession, addMs?: number) => {
    looks += 1;
    if (addMs !== undefined && off !== undefined) {
      added.push(addMs);
      off += addMs;
    }
    return off === undefined ? {} : { clockMs: Date.now() + off };
  };
  const sleep = (ms: number): void => {
    off = (off ?? 0) - ms;
  };
  return { session, ask, added, end, sleep, looks: () => looks };
}

describe('the clock of a guest', () => {
  it('is set once, also when two look at the same time', async () => {
    const guest = guestOf(-60_000);
    const clock = new GuestClock({ ask: guest.ask });
    await Promise.all([clock.look(guest.session), clock.look(guest.session)]);
    expect(guest.added).toEqual([60_000]);
  });

  it('is looked at again and again for as long as the session lives, and set after its host slept', async () => {
    const guest = guestOf(0);
    new GuestClock({ ask: guest.ask, everyMs: 1000 }).watch(guest.session);
    await vi.advanceTimersByTimeAsync(1500);
    expect(guest.added).toEqual([]);
    guest.sleep(3_600_000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(guest.added).toEqual([3_600_000]);
    guest.end();
    await vi.advanceTimersByTimeAsync(0);
    const before = guest.looks();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(guest.looks()).toBe(before);
  });

  it('is left alone where the guest says nothing of it', async () => {
    const guest = guestOf(undefined);
    await new GuestClock({ ask: guest.ask }).look(guest.session);
    expect(guest.looks()).toBe(1);
  });

  it('that cannot be asked is a look that fails, and no later one does for it', async () => {
    const guest = guestOf(-60_000);
    let isBroken = true;
    const ask = async (session: LinkSession, addMs?: number) => {
      if (isBroken) throw new Error('no answer');
      return guest.ask(session, addMs);
    };
    const clock = new GuestClock({ ask });
    await expect(clock.look(guest.session)).rejects.toThrow('no answer');
    isBroken = false;
    await clock.look(guest.session);
    expect(guest.added).toEqual([60_000]);
  });
});
