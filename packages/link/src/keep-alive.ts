import type { LinkClock } from './clock.ts';
import { KEEPALIVE_MISSES } from './limits.ts';

export interface KeepAliveEvents {
  sendPing(): void;
  onSilentPeer(): void;
}

/**
 * Counts intervals in a row without a whole frame from the peer, sends a PING in each, and calls the peer dead when
 * `KEEPALIVE_MISSES` of them stayed without an answer. Counting intervals, not time, forgives a process that itself was stopped: it counts one.
 */
export class KeepAlive {
  #misses = 0;
  #heard = true;
  #cancel: (() => void) | undefined;

  constructor(clock: LinkClock, intervalMs: number, events: KeepAliveEvents) {
    const arm = (): void => {
      this.#cancel = clock.after(intervalMs, () => {
        this.#misses = this.#heard ? 0 : this.#misses + 1;
        if (this.#misses > KEEPALIVE_MISSES) {
          events.onSilentPeer();
          return;
        }
        if (!this.#heard) events.sendPing();
        this.#heard = false;
        arm();
      });
    };
    arm();
  }

  /** A whole frame came. */
  heard(): void {
    this.#heard = true;
  }

  stop(): void {
    this.#cancel?.();
  }
}
