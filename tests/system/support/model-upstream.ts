import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TLS = fileURLToPath(new URL('./tls/', import.meta.url));
/** The certificate that the upstream shows, for `localhost`; it is its own authority. */
export const UPSTREAM_CA = join(TLS, 'test-only-cert.pem');

/** One request that reached the upstream. */
export interface UpstreamRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

/** A provider of models that answers as a test says, over TLS. */
export class ModelUpstream {
  readonly requests: UpstreamRequest[] = [];
  readonly #server: Server;
  answer: (request: UpstreamRequest, response: ServerResponse) => void;

  private constructor(answer: ModelUpstream['answer']) {
    this.answer = answer;
    const options = { cert: readFileSync(UPSTREAM_CA), key: readFileSync(join(TLS, 'test-only-key.pem')) };
    this.#server = createServer(options, (request, response) => void this.#serve(request, response));
  }

  static async start(answer: ModelUpstream['answer'] = answerMessage): Promise<ModelUpstream> {
    const upstream = new ModelUpstream(answer);
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve));
    return upstream;
  }

  get url(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = '', url = '', headers, rawHeaders } = request;
    const seen = { method, url, headers, rawHeaders, body: Buffer.concat(parts).toString() };
    this.requests.push(seen);
    this.answer(seen, response);
  }
}

/** Answers as the Messages format does: whole, or as events where the request asks for a stream. */
export function answerMessage(request: UpstreamRequest, response: ServerResponse): void {
  const usage = { input_tokens: 20, output_tokens: 5 };
  if (!request.body.includes('"stream":true')) {
    response.writeHead(200, { 'content-type': 'application/json', 'request-id': 'req_1' });
    response.end(JSON.stringify({ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'hello' }], usage }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = (data: { readonly type: string } & Record<string, unknown>) =>
    response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
  event({ type: 'message_start', message: { usage: { input_tokens: 20, output_tokens: 1 } } });
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } });
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } });
  event({ type: 'message_stop' });
  response.end();
}
