import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CodedError } from '@firecrew/base';
import { nodeDataPaths } from '@firecrew/protocol';
import { request } from 'undici';
import type { ServerConnections } from './server-connections.ts';

/** The data calls of one attempt: blobs in, blobs and log bytes out, authorised by the attempt's own token. */
export class DataClient {
  readonly #server: () => Promise<URL>;
  readonly #token: string;
  readonly #turnId: string;
  readonly #attempt: number;
  readonly #connections: ServerConnections;

  constructor(
    server: () => Promise<URL>,
    token: string,
    key: { readonly turnId: string; readonly attempt: number },
    connections: ServerConnections,
  ) {
    this.#server = server;
    this.#token = token;
    this.#turnId = key.turnId;
    this.#attempt = key.attempt;
    this.#connections = connections;
  }

  /**
   * Fetches an input into `file`; content of another digest or size is refused. Throws `input_unavailable` when the server does not
   * give it, `input_damaged`, and uncoded errors where asking again may help.
   */
  async download(digest: string, bytes: number, file: string): Promise<void> {
    const reply = await this.#call('GET', nodeDataPaths.blob(this.#turnId, this.#attempt, digest));
    if (reply.statusCode !== 200) {
      await reply.body.dump();
      if (reply.statusCode >= 500) throw new Error(`the server answered with status ${reply.statusCode}`);
      throw new CodedError('input_unavailable', `the input ${digest} cannot be fetched: status ${reply.statusCode}`, { id: digest });
    }
    const hash = createHash('sha256');
    let seen = 0;
    const meter = new Transform({
      transform(part: Buffer, _encoding, done) {
        seen += part.length;
        hash.update(part);
        done(seen > bytes ? new CodedError('input_damaged', `the input ${digest} is larger than ordered`, { id: digest }) : null, part);
      },
    });
    const partial = `${file}.part`;
    try {
      await pipeline(reply.body, meter, createWriteStream(partial, { mode: 0o600 }));
      if (seen !== bytes || hash.digest('hex') !== digest)
        throw new CodedError('input_damaged', `the input ${digest} is not what was ordered`, { id: digest });
      await rename(partial, file);
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Uploads a staged file. Throws `upload_refused` when the server does not want it, `upload_failed` when it should be tried again. */
  async upload(digest: string, file: string): Promise<void> {
    const { size } = await stat(file);
    const reply = await this.#call('PUT', nodeDataPaths.blob(this.#turnId, this.#attempt, digest), createReadStream(file), {
      'content-length': String(size),
    });
    await reply.body.dump();
    if (reply.statusCode === 200) return;
    const final = reply.statusCode === 409 || reply.statusCode === 403 || reply.statusCode === 404;
    throw new CodedError(
      final ? 'upload_refused' : 'upload_failed',
      `the upload of ${digest} was answered with status ${reply.statusCode}`,
      { id: this.#turnId },
    );
  }

  /** Appends log bytes at `offset` and gives the length the server has now; undefined when the attempt is over. */
  async appendLog(offset: number, bytes: Buffer): Promise<number | undefined> {
    const reply = await this.#call('POST', nodeDataPaths.log(this.#turnId, this.#attempt, offset), bytes);
    const body: unknown = await reply.body.json().catch(() => undefined);
    const length =
      typeof body === 'object' && body !== null && 'length' in body && typeof body.length === 'number' ? body.length : undefined;
    if (reply.statusCode === 200 && length !== undefined) return length;
    const code =
      typeof body === 'object' &&
      body !== null &&
      'error' in body &&
      typeof body.error === 'object' &&
      body.error !== null &&
      'code' in body.error
        ? body.error.code
        : undefined;
    if (code === 'log_gap' && length !== undefined) return length;
    if (reply.statusCode === 409 || reply.statusCode === 404) return undefined;
    throw new CodedError('upload_failed', `the log was answered with status ${reply.statusCode}`, { id: this.#turnId });
  }

  async #call(
    method: 'GET' | 'PUT' | 'POST',
    path: string,
    body?: Buffer | ReturnType<typeof createReadStream>,
    headers: Record<string, string> = {},
  ) {
    const url = new URL(path, await this.#server());
    return await request(url, {
      ...this.#connections.requestOptions(url),
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/octet-stream' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      headersTimeout: 120_000,
      bodyTimeout: 120_000,
    });
  }
}
