import { CodedError, codeOf, messageOf } from '@firecrew/base';
import {
  ABANDONED_AFTER_MS,
  type ArtifactOrigin,
  type BootReferences,
  decideRetry,
  type FetchState,
  faultOf,
  fetchArtifact,
  ImageStore,
  lookUpBootArtifacts,
  type MissingArtifact,
  NOT_TRIED,
  piecesFolder,
} from '@firecrew/rootfs';
import type { Logger } from 'pino';

/** Period of the look at what the store lacks, in `ms`: an operator may remove what was there. */
const LOOK_EVERY_MS = 60_000;

/** What the fetcher of one image store works with. */
export interface ImageFetcherOptions {
  /** Root of the image store. */
  readonly store: string;
  /** What the drivers of this store boot from now. */
  readonly wanted: () => readonly BootReferences[];
  /** The server's images, for the token of a link. */
  readonly originOf: (token: string) => ArtifactOrigin;
  readonly architecture: 'amd64' | 'arm64';
  /** Bytes that stay free on the disk of the store. */
  readonly reserveBytes: number;
  readonly log: Logger;
  /** Time in `ms` that never goes back. */
  readonly clock: () => number;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** Told when something came, and when what is said of something missing changed. */
  readonly onChange: () => void;
}

/**
 * Gets what an image store lacks from the server, one artifact after another, beside everything else that the node does. What has come is
 * kept in the store, and the next try goes on from it, also that of another process.
 */
export class ImageFetcher {
  readonly #options: ImageFetcherOptions;
  readonly #store: ImageStore;
  readonly #stopped = new AbortController();
  readonly #states = new Map<string, FetchState>();
  readonly #said = new Map<string, string>();
  #token: string | undefined;
  #wake: (() => void) | undefined;
  /** A link came up while a round was under way, which may have begun with an older token. */
  #isDue = false;
  #running: Promise<void> | undefined;

  constructor(options: ImageFetcherOptions) {
    this.#options = options;
    this.#store = new ImageStore(options.store);
  }

  /** What is happening about something that the store lacks, for a person; undefined where nothing was begun. */
  statusOf(reference: string): string | undefined {
    return this.#said.get(reference);
  }

  /** Whether something that the store lacks may be there soon: it is being fetched, or will be, and nothing was found that speaks against it. */
  isComing(reference: string): boolean {
    if (this.#token === undefined) return false;
    const state = this.#states.get(reference);
    return state === undefined || (state.failures > 0 && state.dueMs !== null);
  }

  /** A link to the server is up; `token` fetches images over it, and is undefined where the server offers none. Failures before count no more. */
  linked(token: string | undefined): void {
    this.#token = token;
    this.#states.clear();
    this.#isDue = true;
    this.#wake?.();
    this.#running ??= this.#run();
  }

  /** Stops; what is under way is broken off, and what has come of it is kept. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    while (!this.#stopped.signal.aborted) {
      this.#isDue = false;
      const pauseMs = await this.#round().catch((error: unknown) => {
        // Not a failed fetch: the store itself cannot be read. The probe of the driver says so too.
        log.warn({ err: error }, 'what the image store lacks cannot be found out');
        return LOOK_EVERY_MS;
      });
      await this.#sleep(pauseMs);
    }
  }

  /** Tries what is due; gives the time to the next look, in `ms`. */
  async #round(): Promise<number> {
    const { clock, onChange } = this.#options;
    const missing = await this.#missing();
    const isMissing = (reference: string): boolean => missing.some((item) => item.reference === reference);
    for (const known of [this.#said, this.#states])
      for (const reference of [...known.keys()]) if (!isMissing(reference)) known.delete(reference);
    await this.#removeAbandoned(missing);
    let came = false;
    for (const item of missing) {
      if (this.#stopped.signal.aborted) return 0;
      const state = this.#states.get(item.reference) ?? NOT_TRIED;
      if (state.dueMs !== null && state.dueMs <= clock()) came = (await this.#fetch(item, state)) || came;
    }
    if (came) onChange();
    const due = [...this.#states.values()].flatMap(({ dueMs }) => (dueMs === null ? [] : [dueMs - clock()]));
    return Math.max(0, Math.min(LOOK_EVERY_MS, ...due));
  }

  async #fetch(missing: MissingArtifact, state: FetchState): Promise<boolean> {
    const { originOf, architecture, reserveBytes, log, clock, random } = this.#options;
    const { reference, kind } = missing;
    if (this.#token === undefined) {
      this.#say(reference, 'its server offers no images');
      return false;
    }
    // Why an earlier try failed is told until this one gets anything.
    if (!this.#said.has(reference)) this.#say(reference, UNDER_WAY);
    let keptAtFirst: number | undefined;
    let kept = 0;
    const onBytes = (keptBytes: number, sizeBytes: number): void => {
      if (keptAtFirst === undefined) {
        log.info({ artifact: reference, kind, keptBytes, sizeBytes }, 'fetching from the server');
        this.#say(reference, UNDER_WAY);
      }
      keptAtFirst ??= keptBytes;
      kept = keptBytes;
    };
    const options = { architecture, reserveBytes, signal: this.#stopped.signal, onBytes };
    try {
      const { id, sizeBytes } = await fetchArtifact(this.#store, originOf(this.#token), missing, options);
      log.info({ artifact: reference, kind, id, sizeBytes }, 'fetched from the server');
      this.#states.delete(reference);
      this.#said.delete(reference);
      return true;
    } catch (error) {
      if (this.#stopped.signal.aborted) return false;
      const fault = faultOf(codeOf(error));
      const next = decideRetry(state, { fault, newBytes: kept - (keptAtFirst ?? kept), nowMs: clock(), random: random() });
      this.#states.set(reference, next);
      const { failures, refusals } = next;
      // What the server does not have is asked for each minute, and told with the capabilities.
      const level = fault === 'absent' ? 'debug' : 'warn';
      const why = error instanceof CodedError ? { code: error.code, detail: error.message } : { err: error };
      log[level]({ ...why, artifact: reference, kind, fault, keptBytes: kept, failures, refusals }, 'not fetched from the server');
      this.#say(reference, `it was not fetched from the server: ${messageOf(error)}${codeIn(error)}${next.dueMs === null ? NO_MORE : ''}`);
      return false;
    }
  }

  async #missing(): Promise<readonly MissingArtifact[]> {
    const found = new Map<string, MissingArtifact>();
    for (const references of this.#options.wanted())
      for (const item of (await lookUpBootArtifacts(this.#options.store, references)).missing) found.set(item.reference, item);
    return [...found.values()];
  }

  /** Pieces of what nobody wants any more go when they are old; what is wanted by name alone may be any of them. */
  async #removeAbandoned(missing: readonly MissingArtifact[]): Promise<void> {
    if (missing.some(({ id }) => id === null)) return;
    const wanted = new Set(missing.flatMap(({ id }) => (id === null ? [] : [piecesFolder(id)])));
    for (const name of await this.#store.listAbandoned(Date.now(), ABANDONED_AFTER_MS))
      if (!wanted.has(name)) await this.#store.removeAbandoned(name);
  }

  #say(reference: string, text: string): void {
    if (this.#said.get(reference) === text) return;
    this.#said.set(reference, text);
    this.#options.onChange();
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#stopped.signal.aborted || this.#isDue) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

const UNDER_WAY = 'it is being fetched from the server';
const NO_MORE = '; it is not tried again before the link to the server is made anew';

function codeIn(error: unknown): string {
  return error instanceof CodedError ? ` (${error.code})` : '';
}
