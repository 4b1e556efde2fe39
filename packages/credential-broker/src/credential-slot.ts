import { CredentialSearch } from '@firecrew/model-route';

/** The credential of a route as it is now: it may come later than the first request, and change while requests are under way. */
export class CredentialSlot {
  #now: string | null | undefined;
  /** Those that were used: an answer under way may show an older one. */
  #used: readonly string[] = [];
  #search = new CredentialSearch([]);
  #waiting: (() => void)[] = [];

  /** Takes the newest one; null says that the route has none. */
  set(credential: string | null): void {
    this.#now = credential;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** The credential for a request that is sent now, or undefined when none came in time. */
  async take(waitMs: number): Promise<string | null | undefined> {
    if (this.#now === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    if (typeof this.#now === 'string' && !this.#used.includes(this.#now)) {
      this.#used = [this.#now, ...this.#used].slice(0, USED_MAX);
      this.#search = new CredentialSearch(this.#used);
    }
    return this.#now;
  }

  /** What no answer may show. */
  get search(): CredentialSearch {
    return this.#search;
  }
}

/** Earlier credentials that are still searched for. */
const USED_MAX = 4;
