import type { Issuer, IssuerReply, MintReply, MintRequest, SeatKey } from '@firecrew/seat-keys';

/** What a {@link StaticIssuer} works with. */
export interface StaticIssuerOptions {
  readonly name: string;
  /** Keys by role, as they lay where its file says. */
  readonly keys: ReadonlyMap<string, { readonly key: SeatKey; readonly keyId: string }>;
  /** Whether the server accepts a key now. */
  readonly isAccepted: (key: SeatKey) => Promise<boolean>;
}

/**
 * Keys that somebody else made and the operator put in, for machines that may not mint. It gives what is there, and ends nothing: a key counts
 * as gone once the server does not accept it any more.
 */
export class StaticIssuer implements Issuer {
  readonly name: string;
  readonly #options: StaticIssuerOptions;

  constructor(options: StaticIssuerOptions) {
    this.#options = options;
    this.name = options.name;
  }

  async mint({ role }: MintRequest): Promise<MintReply> {
    const entry = this.#options.keys.get(role);
    return entry === undefined ? { status: 'not_offered' } : { status: 200, ...entry };
  }

  async revoke(keyId: string): Promise<IssuerReply> {
    const entry = [...this.#options.keys.values()].find((item) => item.keyId === keyId);
    // Which key it was is not known here any more, so whether it is gone is not either.
    if (entry === undefined || (await this.verify(entry.key)).status !== 404) return { status: 'not_offered' };
    return { status: 404 };
  }

  async verify(key: SeatKey): Promise<IssuerReply> {
    return { status: (await this.#options.isAccepted(key)) ? 200 : 404 };
  }

  async askMintRight(): Promise<IssuerReply> {
    return { status: 'not_offered' };
  }
}
