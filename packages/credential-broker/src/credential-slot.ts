import { CredentialSearch } from '@firecrew/model-route';
import { LateValue } from './late-value.ts';

/** Earlier credentials that are still searched for. */
const USED_MAX = 4;

/** The credential of a route as it is now: it may come later than the first request, and change while requests are under way. */
export class CredentialSlot {
  readonly #now = new LateValue<string | null>();
  /** Those that were used: an answer under way may show an older one. */
  #used: readonly string[] = [];
  #search = new CredentialSearch([]);

  /** Takes the newest one; null says that the route has none. */
  set(credential: string | null): void {
    this.#now.set(credential);
  }

  /** The credential for a request that is sent now, or undefined when none came in time. */
  async take(waitMs: number): Promise<string | null | undefined> {
    const now = await this.#now.take(waitMs);
    if (typeof now === 'string' && !this.#used.includes(now)) {
      this.#used = [now, ...this.#used].slice(0, USED_MAX);
      this.#search = new CredentialSearch(this.#used);
    }
    return now;
  }

  /** What no answer may show. */
  get search(): CredentialSearch {
    return this.#search;
  }
}
