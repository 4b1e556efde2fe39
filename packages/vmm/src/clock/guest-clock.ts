import type { LinkSession } from '@firecrew/link';
import { guestHealth } from '../guest-client/simple-requests.ts';
import { judgeClock } from './judge-clock.ts';

/** Pause between two looks at the clock of a guest, in `ms`: what is late by a sleep of the host is right again soon after. */
export const CLOCK_EVERY_MS = 10_000;

/** What it looks with. */
export interface GuestClockOptions {
  /** Clock of the host, in `ms` since 1970. */
  readonly now?: () => number;
  readonly ask?: (session: LinkSession, addClockMs?: number) => Promise<{ readonly clockMs?: number | undefined }>;
  readonly everyMs?: number;
}

/** Keeps the clock of one VM near that of its host: it stood still while its host slept, and knows nothing of a host whose clock was set. */
export class GuestClock {
  readonly #options: Required<GuestClockOptions>;
  /** One look at a time: two that saw the same difference would add it twice. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ now = Date.now, ask = guestHealth, everyMs = CLOCK_EVERY_MS }: GuestClockOptions = {}) {
    this.#options = { now, ask, everyMs };
  }

  /** Looks now, and again and again for as long as the session lives. A look that fails is one that comes later. */
  watch(session: LinkSession): void {
    const look = (): void => void this.look(session).catch(() => undefined);
    look();
    const timer = setInterval(look, this.#options.everyMs).unref();
    void session.closed.then(() => clearInterval(timer));
  }

  /** Looks at the clock, and sets it where it is off. Rejects like `guestHealth`. A guest agent that says nothing of its clock is left alone. */
  look(session: LinkSession): Promise<void> {
    const next = this.#last.then(() => this.#look(session));
    this.#last = next.catch(() => undefined);
    return next;
  }

  async #look(session: LinkSession): Promise<void> {
    const { now, ask } = this.#options;
    const askedMs = now();
    const { clockMs } = await ask(session);
    if (clockMs === undefined) return;
    const judged = judgeClock({ askedMs, guestMs: clockMs, answeredMs: now() });
    if (judged.verdict === 'step') await ask(session, judged.addMs);
  }
}
