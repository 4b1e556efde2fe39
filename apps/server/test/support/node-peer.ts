import { type KeyObject, sign } from 'node:crypto';
import { GENERATION, nodeDataPaths, nodeHelloText, type ServerMessage } from '@firecrew/protocol';
import WebSocket from 'ws';
import type { TestServer } from './running-server.ts';

/** A node's end of the link, with the messages that came and were not taken. */
export class NodePeer {
  readonly ws: WebSocket;
  readonly server: TestServer;
  readonly #got: ServerMessage[] = [];
  #waiting: (() => void)[] = [];

  constructor(server: TestServer, headers: Record<string, string> = {}) {
    this.server = server;
    this.ws = new WebSocket(server.url.replace('http', 'ws').concat(nodeDataPaths.link), { headers });
    this.ws.on('error', () => undefined);
    this.ws.on('message', (data) => {
      this.#got.push(JSON.parse(String(data)) as ServerMessage);
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** Takes the first message of a kind. */
  async next<T extends ServerMessage['t']>(t: T): Promise<Extract<ServerMessage, { t: T }>> {
    for (;;) {
      const at = this.#got.findIndex((message) => message.t === t);
      const [found] = at < 0 ? [] : this.#got.splice(at, 1);
      if (found !== undefined) return found as Extract<ServerMessage, { t: T }>;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Messages of a kind that have come and were not taken. */
  pending(t: ServerMessage['t']): number {
    return this.#got.filter((message) => message.t === t).length;
  }

  send(message: Record<string, unknown>): void {
    this.ws.send(JSON.stringify(message));
  }

  /** Answers the challenge as the server's own node, signed with `key`; `over` is said otherwise than it was signed. */
  async hello(key: KeyObject = this.server.nodeKey, over: Record<string, unknown> = {}): Promise<void> {
    const { nonce } = await this.next('challenge');
    const { nodeId } = this.server;
    const signature = sign(null, Buffer.from(nodeHelloText(nonce, nodeId, 'boot')), key).toString('base64');
    const said = { generation: GENERATION, minGeneration: GENERATION, nodeId, signature, bootId: 'boot', version: '1', turns: [] };
    this.send({ t: 'hello', ...said, ...over });
  }

  close(): void {
    this.ws.terminate();
  }
}
