import { EVENTS_CHANNEL, LOGS_CHANNEL } from '@firecrew/store';
import type { Client, Notification } from 'pg';
import type { Logger } from 'pino';

/** Pause before a broken connection is made anew. */
const RECONNECT_AFTER_MS = 500;

/** What changed of a mission. */
export type Change = 'events' | 'log';

/**
 * Tells readers that a mission has new events or log bytes; they then read the database. A reader that was told nothing
 * for a while looks by itself, so a lost notification costs a delay and no event.
 */
export class ChangeFeed {
  readonly #waiting = new Map<string, Set<() => void>>();
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #stopped = false;

  /** Listens with a connection of its own, and makes a new one whenever it breaks; then every reader looks by itself. */
  async start(connect: () => Client, log: Logger): Promise<void> {
    const client = connect();
    client.on('notification', (notification) => this.#onNotification(notification));
    client.on('error', (error) => log.warn({ err: error }, 'the change feed lost its connection'));
    client.on('end', () => {
      if (this.#client !== client || this.#stopped) return;
      this.#client = undefined;
      this.#retry = setTimeout(() => {
        this.start(connect, log)
          .then(() => this.wakeAll())
          .catch((error: unknown) => log.warn({ err: error }, 'the change feed could not connect'));
      }, RECONNECT_AFTER_MS);
    });
    this.#client = client;
    await client.connect();
    for (const channel of [EVENTS_CHANNEL, LOGS_CHANNEL]) await client.query(`listen ${channel}`);
  }

  /**
   * Starts to watch; `next` resolves at the first change since the last call (or since the start), at the latest after `maxMs`.
   * Watch before reading the database, so that a change between the two is not missed.
   */
  watch(missionId: string, changes: readonly Change[]): { next(maxMs: number, signal: AbortSignal): Promise<void>; stop(): void } {
    const keys = changes.map((change) => `${change}:${missionId}`);
    let changed = false;
    let wake: (() => void) | undefined;
    const onChange = () => {
      changed = true;
      wake?.();
    };
    for (const key of keys) this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(onChange));
    return {
      next: async (maxMs, signal) => {
        if (!changed && !signal.aborted) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, maxMs);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
            signal.addEventListener('abort', wake);
          });
          // A reader waits many times on the same signal.
          if (wake !== undefined) signal.removeEventListener('abort', wake);
        }
        changed = false;
        wake = undefined;
      },
      stop: () => {
        for (const key of keys) {
          const set = this.#waiting.get(key);
          set?.delete(onChange);
          if (set?.size === 0) this.#waiting.delete(key);
        }
      },
    };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#retry);
    await this.#client?.end().catch(() => undefined);
  }

  /** Wakes every reader: after a reconnect nobody knows what was missed. */
  wakeAll(): void {
    for (const set of this.#waiting.values()) for (const tell of set) tell();
  }

  #onNotification(notification: Notification): void {
    const change = notification.channel === LOGS_CHANNEL ? 'log' : 'events';
    for (const tell of this.#waiting.get(`${change}:${notification.payload ?? ''}`) ?? []) tell();
  }
}
