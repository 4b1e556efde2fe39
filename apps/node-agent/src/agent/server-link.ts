import { createPrivateKey, sign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CodedError, messageOf, readBootId } from '@firecrew/base';
import { ChainError } from '@firecrew/egress-proxy';
import {
  decodeMessage,
  FRAME_HEAD_CHARS,
  GENERATION,
  MAX_NODE_MESSAGE_BYTES,
  MIN_GENERATION,
  type NodeMessage,
  negotiateGeneration,
  nodeDataPaths,
  nodeHelloText,
  parseJson,
  SERVER_MESSAGE_TYPES,
  type ServerMessage,
  serverMessageSchema,
} from '@firecrew/protocol';
import type { Logger } from 'pino';
import WebSocket, { type RawData } from 'ws';
import type { ServerConnections } from './server-connections.ts';

/** Pauses between attempts to connect: doubled from the first to the last. */
export const RECONNECT_MIN_MS = 250;
export const RECONNECT_MAX_MS = 10_000;
/** A server that says nothing for this long while it should answer renewals is taken for gone. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Bytes that may wait for a slow server; events beyond stay in their folders, where they are safe. */
const SEND_BUFFER_BYTES = 16 * 1024 * 1024;

type Hello = Extract<NodeMessage, { t: 'hello' }>;

export interface ServerLinkOptions {
  readonly nodeId: string;
  readonly keyFile: string;
  readonly version: string;
  readonly server: () => Promise<URL>;
  readonly connections: ServerConnections;
  /** The turns this node holds now. */
  readonly turns: () => Hello['turns'];
  /** Called for each message after the hello, one at a time. */
  readonly onMessage: (message: ServerMessage) => Promise<void>;
  readonly log: Logger;
}

/** The node's link to its server: dialled again for ever, each time with a signed hello. */
export class ServerLink {
  readonly #options: ServerLinkOptions;
  #ws: WebSocket | undefined;
  #welcomed = false;
  #stopped = false;
  #pauseMs = RECONNECT_MIN_MS;
  #timer: NodeJS.Timeout | undefined;
  /** Why the operator's proxy opened no tunnel last, which is told once. */
  #proxyFault: string | undefined;

  constructor(options: ServerLinkOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#connect();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#ws?.close(1001, 'node agent stops');
  }

  get isUp(): boolean {
    return this.#welcomed;
  }

  /** Sends a message; false when it was not sent, and then the state it came from says it again. */
  send(message: NodeMessage): boolean {
    const ws = this.#ws;
    if (
      ws === undefined ||
      ws.readyState !== ws.OPEN ||
      (message.t !== 'hello' && !this.#welcomed) ||
      ws.bufferedAmount > SEND_BUFFER_BYTES
    )
      return false;
    ws.send(JSON.stringify(message));
    return true;
  }

  async #connect(): Promise<void> {
    try {
      const url = new URL(nodeDataPaths.link, await this.#options.server());
      url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
      const ws = new WebSocket(url, {
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        maxPayload: MAX_NODE_MESSAGE_BYTES,
        perMessageDeflate: false,
        ...this.#options.connections.socketOptions(url),
      });
      this.#ws = ws;
      let queue: Promise<void> = Promise.resolve();
      ws.on('message', (data) => {
        queue = queue
          .then(() => this.#onMessage(data))
          .catch((error: unknown) => {
            this.#options.log.error({ err: error }, 'a message of the server failed');
            ws.terminate();
          });
      });
      ws.on('error', (error) => this.#onError(error));
      ws.on('close', () => this.#onClose());
    } catch (error) {
      this.#options.log.debug({ detail: messageOf(error) }, 'no server to connect to yet');
      this.#onClose();
    }
  }

  #onError(error: Error): void {
    const { log } = this.#options;
    const fault = error instanceof ChainError ? error.reason : undefined;
    if (fault === undefined || fault === this.#proxyFault) return void log.debug({ err: error }, 'server link failed');
    this.#proxyFault = fault;
    log.warn({ code: fault, detail: error.message }, 'the egress proxy does not lead to the server');
  }

  #onClose(): void {
    if (this.#welcomed) this.#options.log.warn('server link is down');
    this.#welcomed = false;
    this.#ws = undefined;
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#connect(), this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, RECONNECT_MAX_MS);
  }

  async #onMessage(data: RawData): Promise<void> {
    const text = Buffer.isBuffer(data)
      ? data.toString('utf8')
      : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]).toString('utf8');
    const json = parseJson(text);
    const decoded = json.ok ? decodeMessage(serverMessageSchema, SERVER_MESSAGE_TYPES, json.value) : json;
    if (!decoded.ok) {
      this.#options.log.warn(
        { code: decoded.code, detail: decoded.message, head: text.slice(0, FRAME_HEAD_CHARS) },
        'server message refused',
      );
      this.send({ t: 'error', code: decoded.code, message: decoded.message });
      return;
    }
    const message = decoded.value;
    if (message.t === 'challenge') return await this.#hello(message);
    if (message.t === 'refused')
      throw new CodedError('server_refused_node', `the server refuses this node: ${message.message} (${message.code})`, {
        id: this.#options.nodeId,
      });
    if (message.t === 'welcome') {
      this.#welcomed = true;
      this.#proxyFault = undefined;
      this.#pauseMs = RECONNECT_MIN_MS;
      this.#options.log.info({ epoch: message.epoch }, 'server link is up');
    }
    await this.#options.onMessage(message);
  }

  async #hello(challenge: Extract<ServerMessage, { t: 'challenge' }>): Promise<void> {
    const agreed = negotiateGeneration('nodeLink', challenge.generation, challenge.minGeneration);
    // any code: that of the negotiation, `generation_too_old` or `generation_too_new`
    if (!agreed.ok) throw new CodedError(agreed.code, agreed.message);
    const { nodeId, keyFile, version, turns } = this.#options;
    const bootId = readBootId();
    const key = createPrivateKey(await readFile(keyFile, 'utf8'));
    const signature = sign(null, Buffer.from(nodeHelloText(challenge.nonce, nodeId, bootId)), key).toString('base64');
    this.send({
      t: 'hello',
      generation: agreed.generation === GENERATION ? GENERATION : agreed.generation,
      minGeneration: MIN_GENERATION.nodeLink,
      nodeId,
      signature,
      bootId,
      version,
      turns: turns(),
    });
  }
}
