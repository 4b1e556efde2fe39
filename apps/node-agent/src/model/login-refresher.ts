import { codeOf, messageOf } from '@firecrew/base';
import { type LoginAnswer, refreshDelay } from '@firecrew/model-route';
import type { Logger } from 'pino';

export interface LoginOptions {
  readonly command: readonly string[];
  readonly everyMs: number;
  readonly run: (command: readonly string[], signal: AbortSignal) => Promise<LoginAnswer>;
  /** There is another credential than before. */
  readonly onNew: () => void;
  readonly log: Logger;
  /** Wall clock in `ms`, as that of the provider. */
  readonly now?: () => number;
}

/** The one refresher of a login: its program never runs twice at once, whoever asks, and runs again before its credential ends. */
export class LoginRefresher {
  readonly #options: LoginOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #credential: string | undefined;
  #failures = 0;

  constructor(options: LoginOptions) {
    this.#options = options;
  }

  /** The newest credential; undefined where the program has given none yet, which is logged. The first call runs it. */
  async current(): Promise<string | undefined> {
    if (this.#credential === undefined) await this.#refresh();
    return this.#credential;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  #refresh(): Promise<void> {
    this.#running ??= this.#runOnce().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #runOnce(): Promise<void> {
    const { command, everyMs, run, onNew, log, now = Date.now } = this.#options;
    clearTimeout(this.#timer);
    let delay: number;
    try {
      const { credential, expiresAtMs } = await run(command, this.#stop.signal);
      this.#failures = 0;
      delay = refreshDelay({ kind: 'obtained', lifetimeMs: expiresAtMs === null ? null : expiresAtMs - now(), everyMs });
      const isNew = credential !== this.#credential;
      this.#credential = credential;
      if (isNew) onNew();
    } catch (error) {
      this.#failures += 1;
      delay = refreshDelay({ kind: 'failed', failures: this.#failures });
      // The credential that was there stays: it may still be good.
      if (!this.#stop.signal.aborted)
        log.error({ code: codeOf(error), detail: messageOf(error), failures: this.#failures }, 'the login of a model route failed');
    }
    if (!this.#stop.signal.aborted) this.#timer = setTimeout(() => void this.#refresh(), delay).unref();
  }
}
