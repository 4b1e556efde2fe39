import { codeOf, messageOf } from '@firecrew/base';
import { decideRefusal, LOGIN_REFUSED_MAX, type LoginAnswer, refreshDelay } from '@firecrew/model-route';
import type { Logger } from 'pino';
import { credentialDigest } from '../broker/broker-messages.ts';

export interface LoginOptions {
  readonly command: readonly string[];
  readonly everyMs: number;
  readonly run: (command: readonly string[], signal: AbortSignal) => Promise<LoginAnswer>;
  /** There is another credential than before, or none will come for one that was refused. */
  readonly onChange: () => void;
  readonly log: Logger;
  /** Wall clock in `ms`, as that of the provider. */
  readonly now?: () => number;
  /** Time in `ms` that never goes back. */
  readonly clock?: () => number;
}

/** The one refresher of a login: its program never runs twice at once, whoever asks, and runs again before its credential ends, and once when that was refused. */
export class LoginRefresher {
  readonly #options: LoginOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #credential: string | undefined;
  #failures = 0;
  #ranAtMs = Number.NEGATIVE_INFINITY;
  #runs = 0;
  /** Pauses before runs that refusals ask for. */
  readonly #pauses = new Set<NodeJS.Timeout>();
  /** Digests of credentials that were refused, and whether the run for each is over. */
  readonly #refused = new Map<string, boolean>();

  constructor(options: LoginOptions) {
    this.#options = options;
  }

  /** The newest credential; undefined where the program has given none yet, which is logged. The first call runs it. */
  async current(): Promise<string | undefined> {
    if (this.#credential === undefined) await this.#refresh();
    return this.#credential;
  }

  /** Whether a refusal of the present credential would run the program, or does so now. */
  get isRenewable(): boolean {
    return this.#credential !== undefined && this.#refused.get(credentialDigest(this.#credential)) !== true;
  }

  /** Takes word that a provider refused the credential with this digest; what comes of it is told by `onChange`. */
  refused(digest: string): void {
    const { clock = () => performance.now(), log } = this.#options;
    const isPresent = this.#isPresent(digest);
    const decision = decideRefusal({ isPresent, isKnown: this.#refused.has(digest), sinceRunMs: clock() - this.#ranAtMs });
    if (decision.verdict === 'ignored') return;
    const { delayMs } = decision;
    this.#refused.set(digest, false);
    for (const oldest of this.#refused.keys()) if (this.#refused.size > LOGIN_REFUSED_MAX) this.#refused.delete(oldest);
    log.warn({ delayMs }, 'the provider refused the credential of a login, which is run again');
    const runsBefore = this.#runs;
    const pause = setTimeout(() => {
      this.#pauses.delete(pause);
      void this.#replace(digest, runsBefore);
    }, delayMs).unref();
    this.#pauses.add(pause);
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const pause of this.#pauses) clearTimeout(pause);
    this.#stop.abort();
  }

  /** Runs the program for a credential that was refused; a run that began since then was that already, whatever it gave. */
  async #replace(digest: string, runsBefore: number): Promise<void> {
    await this.#running;
    if (this.#runs === runsBefore) await this.#refresh();
    this.#refused.set(digest, true);
    this.#options.onChange();
  }

  #isPresent(digest: string): boolean {
    return this.#credential !== undefined && credentialDigest(this.#credential) === digest;
  }

  #refresh(): Promise<void> {
    this.#running ??= this.#runOnce().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #runOnce(): Promise<void> {
    const { command, everyMs, run, onChange, log, now = Date.now, clock = () => performance.now() } = this.#options;
    clearTimeout(this.#timer);
    this.#ranAtMs = clock();
    this.#runs += 1;
    let delay: number;
    try {
      const { credential, expiresAtMs } = await run(command, this.#stop.signal);
      this.#failures = 0;
      delay = refreshDelay({ kind: 'obtained', lifetimeMs: expiresAtMs === null ? null : expiresAtMs - now(), everyMs });
      const isNew = credential !== this.#credential;
      this.#credential = credential;
      if (isNew) onChange();
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
