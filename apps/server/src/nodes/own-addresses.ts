import type { LookupAddress } from 'node:dns';
import { CodedError, messageOf } from '@firecrew/base';
import { MAX_OWN_ADDRESSES } from '@firecrew/protocol';
import type { Logger } from 'pino';

/** What the addresses of an installation are found with. */
export interface OwnAddressSources {
  /** Host of the database as it is configured; null for a socket of this machine, which has no address. */
  readonly databaseHost: string | null;
  /** Addresses of this machine's interfaces, without zones. */
  interfaces(): readonly string[];
  lookUp(host: string): Promise<readonly LookupAddress[]>;
  /** The address at which the database says that it was reached, which a name or a pooler in between may hide; null where it says none. */
  askDatabase(): Promise<string | null>;
  readonly log: Pick<Logger, 'error'>;
}

/** The addresses of server and database, which no guest may reach whatever its policy; found anew for each attempt. */
export class OwnAddresses {
  readonly #sources: OwnAddressSources;
  /** What the database's name stood for when it could be looked up last. */
  #known: readonly string[] | undefined;

  constructor(sources: OwnAddressSources) {
    this.#sources = sources;
  }

  /**
   * All of them now, each once. While the database's name cannot be looked up, that is logged and what it stood for last is kept; a name that never
   * could be throws `own_addresses_unknown`, so that no guest starts which might reach it.
   */
  async now(): Promise<string[]> {
    const { interfaces, askDatabase } = this.#sources;
    const told = await askDatabase();
    const all = [...interfaces(), ...(await this.#ofDatabase()), ...(told === null ? [] : [told])];
    const found = [...new Set(all.map((address) => address.replace(/[%/].*$/, '')))];
    if (found.length <= MAX_OWN_ADDRESSES) return found;
    throw unknown(`server and database have ${found.length} addresses, and ${MAX_OWN_ADDRESSES} can be told to a node`);
  }

  async #ofDatabase(): Promise<readonly string[]> {
    const { databaseHost, lookUp, log } = this.#sources;
    if (databaseHost === null) return [];
    try {
      const found = (await lookUp(databaseHost)).map(({ address }) => address);
      if (found.length === 0) throw new CodedError('own_addresses_unknown', 'the name has no address', { id: databaseHost });
      this.#known = found;
    } catch (error) {
      const detail = messageOf(error);
      if (this.#known === undefined) throw unknown(`the addresses of the database ${databaseHost} could not be looked up: ${detail}`);
      log.error({ code: 'own_addresses_unknown', host: databaseHost, detail, kept: this.#known }, 'the database could not be looked up');
    }
    return this.#known ?? [];
  }
}

function unknown(message: string): CodedError {
  return new CodedError('own_addresses_unknown', `what guests must not reach is not known: ${message}`, {
    action: 'See that the name of the database can be looked up on the host of the server; the attempt is not started without it.',
  });
}
