import { CodedError, messageOf } from '@firecrew/base';
import { nodeDataPaths, offeredImagesSchema } from '@firecrew/protocol';
import { type ArtifactDigest, type ArtifactOrigin, judgeReply, MAX_MANIFEST_BYTES, type TransferStep } from '@firecrew/rootfs';
import { request } from 'undici';
import type { ServerConnections } from '../agent/server-connections.ts';

/** Bytes of the list of names that a server offers. */
const MAX_LIST_BYTES = 256 * 1024;
/** Time without a byte after which a transfer is broken, in `ms`. */
const SILENCE_MAX_MS = 60_000;

type Reply = Awaited<ReturnType<typeof request>>;

/** The image store of this node's server, over HTTP. Redirects are not followed, and lengths are compared before a body is read. */
export class ServerImages implements ArtifactOrigin {
  readonly #server: () => Promise<URL>;
  readonly #token: string;
  readonly #connections: ServerConnections;

  /** `token` is the one that the link to the server gave. */
  constructor(server: () => Promise<URL>, token: string, connections: ServerConnections) {
    this.#server = server;
    this.#token = token;
    this.#connections = connections;
  }

  async names(signal: AbortSignal): Promise<ReadonlyMap<string, ArtifactDigest>> {
    const bytes = await this.#document(nodeDataPaths.images, 'the list of images', MAX_LIST_BYTES, signal);
    const parsed = offeredImagesSchema.safeParse(jsonOf(bytes));
    if (!parsed.success) throw new ImageRefused('image_answer_wrong', 'the list of images', 'it is not one that this version reads');
    return new Map(parsed.data.images.map(({ name, id }) => [name, id]));
  }

  async manifest(id: ArtifactDigest, signal: AbortSignal): Promise<Buffer> {
    return await this.#document(nodeDataPaths.imageManifest(hexOf(id)), `the manifest of ${id}`, MAX_MANIFEST_BYTES, signal);
  }

  async file(id: ArtifactDigest, { file, from }: TransferStep, signal: AbortSignal) {
    const what = `${file.name} of ${id}`;
    const range: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` };
    const reply = await this.#call(nodeDataPaths.imageFile(hexOf(id), file.sha256), what, range, signal);
    const verdict = judgeReply(headOf(reply), { from, sizeBytes: file.sizeBytes });
    if (verdict.verdict === 'take') return { from: verdict.from, body: reply.body };
    reply.body.destroy();
    throw new ImageRefused(verdict.code, what, verdict.detail);
  }

  /** A small answer, whole; of a larger one no more than the bound is read. */
  async #document(path: string, what: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    const reply = await this.#call(path, what, {}, signal);
    const parts: Buffer[] = [];
    let bytes = 0;
    try {
      const length = Number(reply.headers['content-length']);
      const verdict = judgeReply(headOf(reply), { from: 0, sizeBytes: length });
      if (verdict.verdict === 'refuse') throw new ImageRefused(verdict.code, what, verdict.detail);
      for await (const part of reply.body) {
        bytes += (part as Buffer).length;
        if (bytes > maxBytes) throw new ImageRefused('image_length_wrong', what, `it is larger than ${maxBytes} bytes`);
        parts.push(part as Buffer);
      }
    } catch (cause) {
      reply.body.destroy();
      if (cause instanceof CodedError || signal.aborted) throw cause;
      throw new ImageRefused('image_transfer_broken', what, messageOf(cause), cause);
    }
    return Buffer.concat(parts);
  }

  async #call(path: string, what: string, headers: Record<string, string>, signal: AbortSignal): Promise<Reply> {
    try {
      const url = new URL(path, await this.#server());
      const reply = await request(url, {
        ...this.#connections.requestOptions(url),
        headers: { authorization: `Bearer ${this.#token}`, ...headers },
        headersTimeout: SILENCE_MAX_MS,
        bodyTimeout: SILENCE_MAX_MS,
        signal,
      });
      // Who reads the body is told by its iterator; until somebody does, a failure must not end this process.
      reply.body.on('error', () => undefined);
      return reply;
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw new ImageRefused('image_transfer_broken', what, messageOf(cause), cause);
    }
  }
}

type ImageFault = 'image_redirected' | 'image_not_offered' | 'image_answer_wrong' | 'image_length_wrong' | 'image_transfer_broken';

const ACTIONS: Readonly<Record<ImageFault, string>> = {
  image_redirected: 'Let the settings of this node name the server itself: no redirect is followed.',
  image_not_offered: 'Make it on the server with firecrew image, or here.',
  image_answer_wrong: 'Look at what stands between this node and its server, and that both are of versions that fit.',
  image_length_wrong: 'Look at what stands between this node and its server.',
  image_transfer_broken: 'Check the connection to the server and its log; it is tried again.',
};

/** The server did not give what was asked for, and why. */
class ImageRefused extends CodedError {
  override readonly code: ImageFault;

  constructor(code: ImageFault, what: string, detail: string, cause?: unknown) {
    super(code, `the server does not give ${what}: ${detail}`, { id: what, action: ACTIONS[code], cause });
    this.code = code;
  }
}

function headOf({ statusCode, headers }: Reply) {
  const one = (name: string): string | null => {
    const value = headers[name];
    return typeof value === 'string' ? value : null;
  };
  return {
    status: statusCode,
    contentLength: one('content-length'),
    contentRange: one('content-range'),
    contentEncoding: one('content-encoding'),
  };
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

function hexOf(id: ArtifactDigest): string {
  return id.slice('sha256:'.length);
}
