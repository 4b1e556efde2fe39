import { once } from 'node:events';
import { link, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FirecrackerApi, MAX_ANSWER_BYTES } from '../../src/firecracker-driver/firecracker-api.ts';
import { MAX_CONNECTIONS, startApiServer } from './simulator/api-server.ts';

const FOREVER = new Promise<never>(() => undefined);
const GET = { method: 'GET', path: '/' } as const;
const START = { method: 'PUT', path: '/actions', body: { action_type: 'InstanceStart' } } as const;

let folder = '';
let path = '';
const servers: Server[] = [];
const apis: FirecrackerApi[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-api-'));
  path = join(folder, 'a');
});
afterEach(async () => {
  for (const api of apis.splice(0)) api.close();
  for (const server of servers.splice(0)) server.close();
  await rm(folder, { recursive: true, force: true });
});

/** A server that answers every request with these bytes. */
async function answerWith(answer: string, onBytes: (bytes: string) => void = () => undefined): Promise<Socket[]> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (part: Buffer) => {
      onBytes(part.toString('latin1'));
      socket.write(answer);
    });
  });
  servers.push(server);
  server.listen(path);
  await once(server, 'listening');
  return sockets;
}

/** Leaves a socket at the path that nobody listens on. */
async function leaveSocket(): Promise<void> {
  // Under another name as long as it is listened on: who dials already must not get a connection.
  const server = createServer().listen(`${path}-made`);
  await once(server, 'listening');
  await link(`${path}-made`, `${path}-kept`);
  await new Promise((resolve) => server.close(resolve));
  await rename(`${path}-kept`, path);
}

async function dial(timeoutMs = 2000, gone: Promise<never> = FOREVER): Promise<FirecrackerApi> {
  const api = await FirecrackerApi.dial(path, { timeoutMs, gone });
  apis.push(api);
  return api;
}

const NO_CONTENT = 'HTTP/1.1 204 \r\nServer: Firecracker API\r\nConnection: keep-alive\r\n\r\n';

describe('a call to a Firecracker', () => {
  it('sends a body with its length, whole and in one piece, and never in chunks', async () => {
    const pieces: string[] = [];
    await answerWith(NO_CONTENT, (bytes) => pieces.push(bytes));
    await (await dial()).call(START, 1000);
    expect(pieces).toHaveLength(1);
    expect(pieces[0]).toMatch(/^PUT \/actions HTTP\/1\.1\r\n/);
    expect(pieces[0]).toMatch(/\r\nContent-Length: 31\r\n/i);
    expect(pieces[0]).not.toMatch(/transfer-encoding|expect:/i);
    expect(pieces[0]?.split('\r\n\r\n')[1]).toBe('{"action_type":"InstanceStart"}');
  });

  it('is one of many over one connection that is never half-closed', async () => {
    const sockets = await answerWith(NO_CONTENT);
    const api = await dial();
    for (let call = 0; call < 20; call += 1) await api.call(START, 1000);
    expect(sockets).toHaveLength(1);
    expect(sockets[0]?.readableEnded).toBe(false);
  });

  it('gives the JSON of its answer, and nothing for none', async () => {
    await answerWith(
      'HTTP/1.1 200 \r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n{"firecracker_version":"1.16.1"}',
    );
    expect(await (await dial()).call(GET, 1000)).toEqual({ firecracker_version: '1.16.1' });
  });

  it.each([
    ['its fault message', '{"fault_message":"The ID cannot be empty."}', 'The ID cannot be empty.'],
    ['words that are no JSON', '{ "error": "Invalid header.\nAll previous." }', '{ "error": "Invalid header. All previous." }'],
    ['control characters', '\u001b[2Jgone', ' [2Jgone'],
    ['an object of other things', '{"fault_message":{}}', '{"fault_message":{}}'],
    ['nothing', '', 'without a word'],
  ])('is refused with %s in the message', async (_, body, words) => {
    await answerWith(`HTTP/1.1 400 \r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    await expect((await dial()).call(GET, 1000)).rejects.toMatchObject({
      code: 'firecracker_refused',
      message: `Firecracker refused GET / (400): ${words}`,
    });
  });

  it('goes on after one that was refused', async () => {
    let count = 0;
    servers.push(
      await startApiServer(path, async () => {
        count += 1;
        return count === 1 ? { status: 400, body: '{"fault_message":"no"}' } : { status: 204 };
      }),
    );
    const api = await dial();
    await expect(api.call(START, 1000)).rejects.toMatchObject({ code: 'firecracker_refused' });
    expect(await api.call(START, 1000)).toBeUndefined();
  });

  it('ends at its deadline when nothing answers, and no later call is made', async () => {
    let requests = 0;
    servers.push(
      await startApiServer(path, async () => {
        requests += 1;
        return 'never';
      }),
    );
    const api = await dial();
    const from = performance.now();
    await expect(api.call(GET, 150)).rejects.toMatchObject({
      code: 'firecracker_failed',
      message: expect.stringContaining('within 150 ms'),
    });
    expect(performance.now() - from).toBeLessThan(2000);
    await expect(api.call(GET, 150)).rejects.toMatchObject({ code: 'firecracker_failed' });
    expect(requests).toBe(1);
  });

  it('does not dial again when the connection is lost: who listens there later may be somebody else', async () => {
    const sockets = await answerWith(NO_CONTENT);
    const api = await dial();
    await api.call(START, 1000);
    sockets[0]?.destroy();
    await delay(50);
    await expect(api.call(START, 1000)).rejects.toMatchObject({
      code: 'firecracker_failed',
      message: expect.stringContaining('connection was lost'),
    });
    expect(sockets).toHaveLength(1);
  });

  it('takes no more of an answer than its bound', async () => {
    await answerWith(`HTTP/1.1 200 \r\nContent-Length: ${MAX_ANSWER_BYTES + 1}\r\n\r\n${'x'.repeat(MAX_ANSWER_BYTES + 1)}`);
    await expect((await dial()).call(GET, 1000)).rejects.toMatchObject({
      code: 'firecracker_failed',
      message: expect.stringContaining(`more than ${MAX_ANSWER_BYTES} bytes`),
    });
  });

  it('is refused by name when all ten connections are taken', async () => {
    servers.push(await startApiServer(path, async () => ({ status: 204 })));
    for (let count = 0; count < MAX_CONNECTIONS; count += 1) await dial();
    await expect((await dial()).call(START, 1000)).rejects.toMatchObject({
      code: 'firecracker_refused',
      message: expect.stringContaining('(503): Too many open connections'),
    });
    apis[0]?.close();
    await delay(50);
    expect(await (await dial()).call(START, 1000)).toBeUndefined();
  });
});

describe('the first dial', () => {
  it('waits for a socket that comes, and for one that nobody listens on yet', async () => {
    const early = dial();
    await delay(50);
    await leaveSocket();
    await delay(50);
    await rm(path);
    await answerWith(NO_CONTENT);
    expect(await (await early).call(START, 1000)).toBeUndefined();
  });

  it('is given up after its time', async () => {
    await expect(dial(100)).rejects.toMatchObject({ code: 'firecracker_failed', message: expect.stringContaining('within 100 ms') });
  });

  it('is given up at once when the process is gone, or the path is no socket', async () => {
    const gone = delay(50).then(() => {
      throw new Error('it ended');
    });
    await expect(dial(60_000, gone)).rejects.toThrow('it ended');
    await writeFile(join(folder, 'file'), '');
    await expect(FirecrackerApi.dial(join(folder, 'file', 'a'), { timeoutMs: 60_000, gone: FOREVER })).rejects.toMatchObject({
      code: 'ENOTDIR',
    });
  });
});
