// One process of the egress bench: `egress-process.ts proxy|relay|upstream AUDIT_FILE`. Says its port, then answers `memory`.
import { once } from 'node:events';
import { openSync, writeSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createPolicy, loadAllowList } from '@firecrew/egress-policy';
import { createEgressProxy } from '@firecrew/egress-proxy';

const CHUNK = Buffer.alloc(65_536, 'x');

/** Sends as many bytes as the first line of a connection asks for. */
function serveBytes(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  socket.once('data', (line) => {
    let left = Number(String(line));
    const more = (): void => {
      while (left > 0) {
        const part = left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK;
        left -= part.length;
        if (!socket.write(part)) return void socket.once('drain', more);
      }
      socket.end();
    };
    more();
  });
}

/** The least that a relay for CONNECT can be: no policy, no audit, no bounds. */
function relay(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  socket.once('data', (head) => {
    const [, host = '', port = ''] = /^CONNECT ([^:]+):(\d+) /.exec(head.toString('latin1')) ?? [];
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  });
}

function proxy(auditFile: string, upstreamPort: number): (socket: Socket) => void {
  const file = openSync(auditFile, 'a');
  const many = 4_000;
  const egress = createEgressProxy({
    policy: createPolicy({
      rules: loadAllowList([{ host: 'localhost', port: upstreamPort, protocol: 'tcp' }]),
      addressRules: [{ host: 'localhost', addresses: ['127.0.0.1', '::1'] }],
      ownAddresses: ['127.0.0.1', '::1'],
    }),
    ids: { vm: 'vm_bench' },
    limits: { connections: many, tunnels: many, tunnelsPerHost: many },
    // As a shim writes them: on the way to the disk before the tunnel opens.
    audit: (line) => {
      writeSync(file, `${JSON.stringify(line)}\n`);
    },
  });
  return (socket) => egress.handle(socket);
}

// Its bench is gone.
process.once('disconnect', () => process.exit());
const [mode, auditFile = '', upstreamPort = '0'] = process.argv.slice(2);
const handler = mode === 'proxy' ? proxy(auditFile, Number(upstreamPort)) : mode === 'relay' ? relay : serveBytes;
const server: Server = createServer({ allowHalfOpen: mode !== 'upstream', noDelay: true }, handler).listen({
  port: 0,
  host: '127.0.0.1',
  backlog: 2048,
});
await once(server, 'listening');
const address = server.address();
process.send?.({ port: address !== null && typeof address === 'object' ? address.port : 0 });
