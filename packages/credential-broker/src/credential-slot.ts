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
  /** The present one, where its keeper may have another one should it be refused. */
  #renewable: string | undefined;
  /** The newest one that its keeper was told about. */
  #told: string | undefined;
  /** Set while the present one was refused and another one may come. */
  #doubt: { readonly over: LateValue<true>; readonly waitMs: number; readonly late: NodeJS.Timeout } | undefined;

  /** Takes the newest one; null says that the route has none. `isRenewable`: whoever keeps it wants to hear that it was refused, and may have another. */
  set(credential: string | null, isRenewable = false): void {
    this.#now.set(credential);
    const isSame = credential !== null && credential === this.#renewable;
    this.#renewable = isRenewable && credential !== null ? credential : undefined;
    if (!isSame || !isRenewable) this.#endDoubt();
  }

  /**
   * The upstream refused `credential`. True where its keeper is to be told, which is once for each; requests then wait for the next one, for `waitMs` in all.
   */
  doubt(credential: string, waitMs: number): boolean {
    if (credential !== this.#renewable || credential === this.#told) return false;
    this.#told = credential;
    this.#endDoubt();
    this.#doubt = { over: new LateValue(), waitMs, late: setTimeout(() => this.#endDoubt(), waitMs).unref() };
    return true;
  }

  /** The credential for a request that is sent now, or undefined when none came in time. */
  async take(waitMs: number): Promise<string | null | undefined> {
    if (this.#doubt !== undefined) await this.#doubt.over.take(this.#doubt.waitMs);
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

  #endDoubt(): void {
    clearTimeout(this.#doubt?.late);
    this.#doubt?.over.set(true);
    this.#doubt = undefined;
  }
}
