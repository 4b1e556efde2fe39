import { createServer, type Server, type Socket } from 'node:net';
import { HttpConnection, type Serve } from './http-connection.ts';

/** Connections that are open at a time, idle ones among them. */
export const MAX_CONNECTIONS = 10;
const FULL_BODY = '{ "error": "Too many open connections" }';
const FULL = `HTTP/1.1 503\r\nServer: Firecracker API\r\nConnection: close\r\nContent-Length: ${FULL_BODY.length}\r\n\r\n${FULL_BODY}`;

/** Listens at the path, which must not exist, and leaves it there for ever. Rejects with the error of the bind. */
export function startApiServer(path: string, serve: Serve): Promise<Server> {
  const open = new Set<Socket>();
  let queue: Promise<unknown> = Promise.resolve();
  // One thread serves all connections, one request at a time.
  const serial: Serve = (request) => {
    const answer = queue.then(() => serve(request));
    queue = answer.catch(() => undefined);
    return answer;
  };
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (open.size >= MAX_CONNECTIONS) {
      socket.on('error', () => undefined);
      socket.end(FULL);
      return;
    }
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    new HttpConnection(socket, serial);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve(server));
  });
}
