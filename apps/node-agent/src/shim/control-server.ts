import { chmod } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { checkSocketPath } from '@firecrew/link';
import {
  CONTROL_REQUEST_TYPES,
  type ControlReply,
  type ControlRequest,
  controlRequestSchema,
  decodeMessage,
  parseJson,
} from '@firecrew/protocol';

/** Bytes of one request line: the longest one holds all that a turn may reach. */
const MAX_LINE_BYTES = 1024 * 1024;

/** Answers requests on `control.sock`, one line each way. The socket is private to its owner, so it needs no secret. */
export async function serveControl(
  path: string,
  answer: (request: ControlRequest) => ControlReply | Promise<ControlReply>,
): Promise<Server> {
  checkSocketPath(path);
  const server = createServer((socket) => serve(socket, answer));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  await chmod(path, 0o600);
  return server;
}

function serve(socket: Socket, answer: (request: ControlRequest) => ControlReply | Promise<ControlReply>): void {
  let held = '';
  let queue: Promise<void> = Promise.resolve();
  socket.setEncoding('utf8');
  socket.on('error', () => socket.destroy());
  socket.on('data', (part: string) => {
    held += part;
    if (held.length > MAX_LINE_BYTES) {
      socket.destroy();
      return;
    }
    const lines = held.split('\n');
    held = lines.pop() ?? '';
    for (const line of lines) {
      queue = queue.then(async () => {
        if (!socket.destroyed) socket.write(`${JSON.stringify(await reply(line, answer))}\n`);
      });
    }
  });
}

async function reply(line: string, answer: (request: ControlRequest) => ControlReply | Promise<ControlReply>): Promise<ControlReply> {
  const json = parseJson(line);
  const decoded = json.ok ? decodeMessage(controlRequestSchema, CONTROL_REQUEST_TYPES, json.value) : json;
  if (!decoded.ok) return { ok: false, code: decoded.code, message: decoded.message };
  return await answer(decoded.value);
}
