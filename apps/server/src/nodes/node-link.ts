import { createPublicKey, randomBytes, verify } from 'node:crypto';
import { CodedError, messageOf } from '@firecrew/base';
import {
  decodeMessage,
  FRAME_HEAD_CHARS,
  GENERATION,
  MAX_NODE_MESSAGE_BYTES,
  MIN_GENERATION,
  NODE_MESSAGE_TYPES,
  type NodeMessage,
  negotiateGeneration,
  nodeDataPaths,
  nodeHelloText,
  nodeMessageSchema,
  parseJson,
  type ServerMessage,
} from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { and, eq, isNull } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { ServerContext } from '../context.ts';
import { hashToken, newToken } from '../http/auth.ts';
import { handleNodeMessage, welcomeNode } from './node-messages.ts';
import type { ConnectedNode } from './node-registry.ts';

/** Time a node has to say hello. */
export const HELLO_TIMEOUT_MS = 10_000;
/** A node that says nothing for this long is disconnected. */
export const NODE_SILENT_MAX_MS = 20_000;
/** Bytes that may wait for a slow node before it is disconnected. */
export const NODE_SEND_BUFFER_BYTES = 64 * 1024 * 1024;

/** Accepts node links on the server's own port. */
export function serveNodeLinks(app: FastifyInstance, context: ServerContext): WebSocketServer {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_NODE_MESSAGE_BYTES, perMessageDeflate: false });
  app.server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const path = (request.url ?? '').split('?')[0];
    if (path !== nodeDataPaths.link || request.headers.origin !== undefined) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (ws) => new NodeConnection(ws, context).start());
  });
  return sockets;
}

/** One connection: challenge, hello, then messages in their order. */
class NodeConnection {
  readonly #ws: WebSocket;
  readonly #context: ServerContext;
  readonly #nonce = randomBytes(32).toString('base64url');
  #node: ConnectedNode | undefined;
  #queue: Promise<void> = Promise.resolve();
  #silence: NodeJS.Timeout | undefined;

  constructor(ws: WebSocket, context: ServerContext) {
    this.#ws = ws;
    this.#context = context;
  }

  start(): void {
    this.#ws.on('error', (error) => this.#context.log.warn({ err: error, node: this.#node?.id }, 'node link failed'));
    this.#ws.on('close', () => this.#end());
    this.#ws.on('message', (data) => {
      this.#expectWithin(NODE_SILENT_MAX_MS);
      // One at a time: the order of a node's events is their meaning.
      this.#queue = this.#queue.then(() => this.#onMessage(data)).catch((error: unknown) => this.#fail(error));
    });
    this.#expectWithin(HELLO_TIMEOUT_MS);
    this.#send({ t: 'challenge', generation: GENERATION, minGeneration: MIN_GENERATION.nodeLink, nonce: this.#nonce });
  }

  async #onMessage(data: RawData): Promise<void> {
    const text = Buffer.isBuffer(data)
      ? data.toString('utf8')
      : Array.isArray(data)
        ? Buffer.concat(data).toString('utf8')
        : Buffer.from(data).toString('utf8');
    const json = parseJson(text);
    const decoded = json.ok ? decodeMessage(nodeMessageSchema, NODE_MESSAGE_TYPES, json.value) : json;
    if (!decoded.ok) {
      this.#context.log.warn(
        { node: this.#node?.id, code: decoded.code, detail: decoded.message, head: text.slice(0, FRAME_HEAD_CHARS) },
        'node message refused; a request it answers may time out',
      );
      this.#send({ t: 'error', code: decoded.code, message: decoded.message });
      return;
    }
    if (decoded.unknownFields > 0)
      this.#context.log.debug({ node: this.#node?.id, fields: decoded.unknownFields, type: decoded.value.t }, 'unknown fields stripped');
    if (this.#node === undefined) await this.#onHello(decoded.value);
    else await handleNodeMessage(this.#context, this.#node, decoded.value);
  }

  async #onHello(message: NodeMessage): Promise<void> {
    if (message.t !== 'hello') throw new CodedError('hello_expected', `the first message of a node must be hello, not ${message.t}`);
    const agreed = negotiateGeneration('nodeLink', message.generation, message.minGeneration);
    // any code: that of the negotiation, `generation_too_old` or `generation_too_new`
    if (!agreed.ok) throw new CodedError(agreed.code, agreed.message);
    const rows = await this.#context.db
      .select()
      .from(tables.nodes)
      .where(and(eq(tables.nodes.id, message.nodeId), isNull(tables.nodes.revokedAt)));
    const row = rows[0];
    const text = Buffer.from(nodeHelloText(this.#nonce, message.nodeId, message.bootId));
    if (row === undefined || !isSigned(row.publicKey, text, message.signature)) {
      throw new CodedError('node_refused', `node ${message.nodeId} is not known, is revoked, or does not hold its key`, {
        id: message.nodeId,
      });
    }
    const imagesToken = newToken('node');
    const node: ConnectedNode = {
      id: row.id,
      name: row.name,
      // What it could do before it was started anew says nothing about now: it probes, and reports within seconds.
      capabilities: null,
      health: row.health,
      healthAtMs: null,
      vms: null,
      lastEnd: null,
      imagesTokenHash: hashToken(imagesToken),
      told: new Set(),
      send: (reply) => this.#send(reply),
      close: (code) => this.#ws.close(4000, code),
    };
    this.#node = node;
    // Known before it is welcomed: of two links of one node the later one stays.
    this.#context.nodes.add(node);
    await welcomeNode(this.#context, node, message, imagesToken);
    this.#context.log.info({ node: node.id, name: node.name, version: message.version, turns: message.turns.length }, 'node connected');
  }

  #send(message: ServerMessage): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    if (this.#ws.bufferedAmount > NODE_SEND_BUFFER_BYTES) {
      this.#ws.terminate();
      return;
    }
    this.#ws.send(JSON.stringify(message));
  }

  #fail(error: unknown): void {
    const code = error instanceof CodedError ? error.code : 'internal';
    this.#context.log.error({ err: error, node: this.#node?.id }, 'node link closed after a failure');
    this.#send({
      t: 'refused',
      code,
      message: error instanceof CodedError ? messageOf(error) : 'the server failed; its log has the cause',
    });
    this.#ws.close(4001, code.slice(0, 100));
  }

  #expectWithin(ms: number): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#ws.terminate(), ms);
  }

  #end(): void {
    clearTimeout(this.#silence);
    if (this.#node === undefined) return;
    this.#context.nodes.remove(this.#node);
    this.#context.log.info({ node: this.#node.id }, 'node disconnected');
  }
}

function isSigned(publicKey: string, text: Buffer, signature: string): boolean {
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
    return verify(null, text, key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}
