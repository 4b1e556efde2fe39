// One process of the model-route bench: `model-process.ts upstream|broker|route FOLDER UPSTREAM_PORT`. Says its port.
import { once } from 'node:events';
import { openSync, readFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createCredentialBroker } from '@firecrew/credential-broker';
import { createModelProxy } from '@firecrew/model-proxy';
import { readUpstream } from '@firecrew/model-route';

const USAGE = { input_tokens: 20, output_tokens: 5 };
const EVENT = 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"word"}}\n\n';
const EVENTS = 20;

/** Answers at once: whole, or as events of which the first comes at once. */
function upstream(folder: string): Server {
  const tls = { cert: readFileSync(join(folder, 'cert.pem')), key: readFileSync(join(folder, 'key.pem')) };
  return createServer(tls, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => {
      body += part;
    });
    request.once('end', () => {
      if (!body.includes('"stream":true')) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'message', usage: USAGE }));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let index = 0; index < EVENTS; index += 1) response.write(EVENT);
      response.end(`event: message_delta\ndata: ${JSON.stringify({ type: 'message_delta', usage: USAGE })}\n\n`);
    });
  });
}

/** Both know it without telling each other. */
const HANDLE = 'h'.repeat(43);
const socketOf = (folder: string): string => join(folder, 'broker.sock');

/** The broker of a node: adds the credential, speaks TLS, searches answers. */
function broker(folder: string, port: string): Server {
  const { server, ...made } = createCredentialBroker();
  const ca = readFileSync(join(folder, 'cert.pem'), 'utf8');
  made.setRoute('r', { format: 'anthropic_messages', upstream: readUpstream(`https://localhost:${port}`), ca });
  made.setCredential('r', 'sk-bench-0123456789abcdef');
  made.setHandles([{ handle: HANDLE, route: 'r', validUntilMs: Number.POSITIVE_INFINITY }]);
  return server.listen(socketOf(folder));
}

/** The route as a shim has it: closed list, budget, an audit file, and the way to the broker. */
function route(folder: string): Server {
  const file = openSync(join(folder, 'audit'), 'a');
  const proxy = createModelProxy({
    broker: socketOf(folder),
    rules: {
      format: 'anthropic_messages',
      hasCredential: true,
      features: [],
      models: null,
      outputCap: 1_000,
      budget: { tokens: 1_000_000_000, micros: null },
      prices: null,
    },
    audit: (line) => {
      writeSync(file, `${JSON.stringify(line)}\n`);
    },
  });
  proxy.setHandle(HANDLE);
  proxy.open();
  return createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => proxy.handle(socket));
}

// Its bench is gone.
process.once('disconnect', () => process.exit());
const [mode, folder = '', port = ''] = process.argv.slice(2);
const server = mode === 'broker' ? broker(folder, port) : (mode === 'route' ? route(folder) : upstream(folder)).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ port: mode === 'broker' ? 0 : (server.address() as AddressInfo).port });
