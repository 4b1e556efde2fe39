import { randomUUID } from 'node:crypto';
import { CodedError } from '@firecrew/base';
import type { Issuer, IssuerReply, MintReply, MintRequest, SeatKey } from '@firecrew/seat-keys';
import { Agent, request } from 'undici';
import { fillBody, fillText, fillUrl, type TemplateValues } from './fill-template.ts';
import { DEFAULT_CALL_TIMEOUT_MS, type HttpIssuerFile, type IssuerCall, type MintCall } from './issuer-file.ts';
import { readMinted } from './read-answer.ts';

/** Most bytes that are read of an answer. */
export const ANSWER_MAX_BYTES = 64 * 1024;

/** What an {@link HttpIssuer} works with. */
export interface HttpIssuerOptions {
  readonly file: HttpIssuerFile;
  /** The admin credential that its file names. */
  readonly credential: string;
  readonly workspace: { readonly id: string; readonly name: string };
}

/** An answer whose status the file expects, or another. */
interface Answer {
  readonly status: number | 'unreachable';
  /** Parsed; undefined where it was no JSON, or was not asked for. */
  readonly body?: unknown;
}

/**
 * Seat keys of any service with an HTTP API, as its file describes the calls. Redirects are not followed and answers are bounded in size and time;
 * a call that failed on the way, was cut, or was answered with a success that the file does not name is `unreachable`: it may have had its effect,
 * and is not sent again.
 */
export class HttpIssuer implements Issuer {
  readonly name: string;
  readonly rotate?: NonNullable<Issuer['rotate']>;
  readonly verify?: NonNullable<Issuer['verify']>;
  readonly #options: HttpIssuerOptions;

  constructor(options: HttpIssuerOptions) {
    this.#options = options;
    this.name = options.file.name;
    const { rotate, whoami } = options.file;
    if (rotate !== undefined)
      this.rotate = async (keyId, wish) => {
        const reply = await this.#mint(rotate, { ...wish, keyId });
        return isGone(rotate.gone, reply.status) ? { status: 404 } : reply;
      };
    if (whoami !== undefined)
      this.verify = async (key, keyId) => {
        const { status } = await this.#call(whoami, keyId === undefined ? {} : { keyId }, whoami.as === 'key' ? key : undefined);
        return { status: isGone(whoami.gone ?? [401, 403, 404, 410], status) ? 404 : status };
      };
  }

  async mint(wish: MintRequest): Promise<MintReply> {
    return await this.#mint(this.#options.file.mint, wish);
  }

  async revoke(keyId: string, { successor }: { readonly successor?: string } = {}): Promise<IssuerReply> {
    const { revoke } = this.#options.file;
    const { status } = await this.#call(revoke, { keyId, ...(successor === undefined ? {} : { successor }) });
    return { status: isGone(revoke.gone, status) ? 404 : status };
  }

  async askMintRight(): Promise<IssuerReply> {
    const { mintRight } = this.#options.file;
    return mintRight === undefined ? { status: 'not_offered' } : { status: (await this.#call(mintRight, {})).status };
  }

  async #mint(call: MintCall, { seatId, role, name, keyId }: MintRequest & { readonly keyId?: string }): Promise<MintReply> {
    const values = { seatId, role, name, requestId: randomUUID(), ...(keyId === undefined ? {} : { keyId }) };
    const { status, body } = await this.#call(call, values);
    return typeof status === 'number' && call.statuses.includes(status) ? { status, ...readMinted(call, body) } : { status };
  }

  async #call(call: IssuerCall, values: TemplateValues, as?: SeatKey): Promise<Answer> {
    const { file, credential, workspace } = this.#options;
    const all = { ...values, workspace: workspace.name, workspaceId: workspace.id };
    const url = fillUrl(file.url, call.path, all);
    if (url === undefined)
      throw new CodedError('issuer_call_refused', `a call of the issuer ${file.name} would lead out of its URL; nothing was sent`, {
        id: file.name,
      });
    const headers: Record<string, string> = { accept: 'application/json' };
    for (const [name, text] of Object.entries(call.headers ?? {})) headers[name] = fillText(text, all, encodeURIComponent);
    headers[file.credential.header] = `${file.credential.prefix ?? ''}${as?.reveal() ?? credential}`;
    const body = call.body === undefined ? null : JSON.stringify(fillBody(call.body, all));
    if (body !== null) headers['content-type'] ??= 'application/json';
    const answer = await exchange(url, { method: call.method, headers, body }, file.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS);
    // A success of another kind than the file describes may have had the effect, and says nothing that can be relied on.
    const isOdd = typeof answer.status === 'number' && answer.status < 300 && !call.statuses.includes(answer.status);
    return isOdd ? { status: 'unreachable' } : answer;
  }
}

/** Statuses by which a service says that there is no such key. */
function isGone(gone: readonly number[] | undefined, status: IssuerReply['status']): boolean {
  return typeof status === 'number' && (gone ?? [404, 410]).includes(status);
}

async function exchange(
  url: URL,
  sent: { readonly method: IssuerCall['method']; readonly headers: Record<string, string>; readonly body: string | null },
  timeoutMs: number,
): Promise<Answer> {
  const dispatcher = new Agent({ connect: { timeout: timeoutMs }, maxResponseSize: ANSWER_MAX_BYTES });
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const { statusCode, body } = await request(url, { ...sent, dispatcher, signal });
    const text = await body.text();
    return { status: statusCode, body: parse(text) };
  } catch {
    // Its text may hold the request, and with it the credential.
    return { status: 'unreachable' };
  } finally {
    await dispatcher.destroy();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
