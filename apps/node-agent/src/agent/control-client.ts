import { connect } from 'node:net';
import { CodedError, messageOf } from '@firecrew/base';
import { type ControlReply, type ControlRequest, controlReplySchema, decodeValue, parseJson } from '@firecrew/protocol';

/** Time a shim has to answer; one that does not is not renewed. */
export const CONTROL_TIMEOUT_MS = 3_000;
const MAX_REPLY_BYTES = 1024 * 1024;

/** Asks a shim on its control socket. Throws `shim_silent` when it does not answer in time. */
export async function askShim(
  socketPath: string,
  request: ControlRequest,
  timeoutMs = CONTROL_TIMEOUT_MS,
): Promise<Extract<ControlReply, { ok: true }>> {
  const line = await new Promise<string>((resolve, reject) => {
    const silent = (why: string) =>
      reject(new CodedError('shim_silent', `the shim at ${socketPath} does not answer: ${why}`, { id: socketPath }));
    const socket = connect(socketPath);
    const timer = setTimeout(() => {
      socket.destroy();
      silent('time is up');
    }, timeoutMs);
    let held = '';
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on('error', (error) => silent(messageOf(error)));
    socket.on('close', () => {
      clearTimeout(timer);
      silent('the connection was closed');
    });
    socket.on('data', (part: string) => {
      held += part;
      const end = held.indexOf('\n');
      if (end < 0 && held.length <= MAX_REPLY_BYTES) return;
      clearTimeout(timer);
      socket.destroy();
      if (end < 0) silent('its answer is too long');
      else resolve(held.slice(0, end));
    });
  });
  const json = parseJson(line);
  const reply = json.ok ? decodeValue(controlReplySchema, json.value) : json;
  if (reply.ok && reply.value.ok) return reply.value;
  throw new CodedError('shim_silent', `the shim at ${socketPath} refused: ${reply.ok ? JSON.stringify(reply.value) : reply.message}`, {
    id: socketPath,
  });
}
