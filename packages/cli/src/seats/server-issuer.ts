import { FirecrewApiError, type FirecrewClient } from '@firecrew/sdk';
import { type Issuer, type IssuerReply, type MintReply, type MintRequest, SeatKey } from '@firecrew/seat-keys';

/** Seat keys made by our own server: scoped tokens of the seat. What the server refuses is an answer, and what never came is `unreachable`. */
export class ServerIssuer implements Issuer {
  readonly #client: Pick<FirecrewClient, 'mintSeatKey' | 'revokeSeatKey' | 'whoami'>;

  constructor(client: Pick<FirecrewClient, 'mintSeatKey' | 'revokeSeatKey' | 'whoami'>) {
    this.#client = client;
  }

  async mint({ seatId, name }: MintRequest): Promise<MintReply> {
    return await statusOf(async () => {
      const { key, keyId } = await this.#client.mintSeatKey(seatId, name);
      return { status: 201, key: new SeatKey(key), keyId };
    });
  }

  async revoke(keyId: string, options: { readonly successor?: string } = {}): Promise<IssuerReply> {
    return await statusOf(async () => {
      await this.#client.revokeSeatKey(keyId, options);
      return { status: 200 };
    });
  }

  async askMintRight(): Promise<IssuerReply> {
    return await statusOf(async () => ({ status: (await this.#client.whoami()).mayManageSeats ? 200 : 403 }));
  }
}

async function statusOf<T extends IssuerReply>(call: () => Promise<T>): Promise<T | IssuerReply> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof FirecrewApiError)) throw error;
    // An answer of another shape may have made a key that nobody can read: as good as none.
    if (error.status === null || (error.status >= 200 && error.status < 300)) return { status: 'unreachable' };
    return { status: error.status };
  }
}
