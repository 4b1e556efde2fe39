import { connect } from 'node:net';

/** Time that is waited for the end of an answer, in `ms`. */
const ANSWER_MS = 5000;

export interface RawAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Sends bytes over a connection of their own, and gives what came until it was whole, the peer closed, or `quietMs` had passed. */
export function sendRaw(path: string, bytes: string, quietMs = ANSWER_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const parts: Buffer[] = [];
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(parts).toString('latin1'));
    };
    const timer = setTimeout(finish, quietMs);
    socket.on('error', (error) => {
      // The peer may close with bytes of ours unread; what it has said counts.
      if ('code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) finish();
      else reject(error);
    });
    socket.on('close', finish);
    socket.on('data', (part: Buffer) => {
      parts.push(part);
      if (quietMs === ANSWER_MS && isWhole(Buffer.concat(parts).toString('latin1'))) finish();
    });
    if (bytes !== '') socket.write(bytes);
  });
}

/** One request of the API as a careful client makes it. */
export async function request(path: string, method: string, target: string, body?: unknown): Promise<RawAnswer> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const length = text === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
  const answer = await sendRaw(path, `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${length}\r\n${text}`);
  const said = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  return { status: Number(answer.split(' ')[1]), body: said === '' ? undefined : (JSON.parse(said) as unknown) };
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer.slice(0, end + 2))?.[1] ?? 0);
  return answer.length >= end + 4 + length;
}
