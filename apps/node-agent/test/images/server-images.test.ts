import { type AddressInfo, createServer, type Server } from 'node:net';
import { codeOf } from '@firecrew/base';
import type { TransferStep } from '@firecrew/rootfs';
import { afterEach, describe, expect, it } from 'vitest';
import { ServerConnections } from '../../src/agent/server-connections.ts';
import { ServerImages } from '../../src/images/server-images.ts';

const ID = `sha256:${'a'.repeat(64)}`;
const BODY = '0123456789';
const STEP: TransferStep = { file: { name: 'big', sha256: 'b'.repeat(64), sizeBytes: BODY.length }, from: 0 };
const signal = new AbortController().signal;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that answers everything with these bytes and closes; `heads` has what it was asked. */
async function answering(...answers: readonly string[]) {
  const heads: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (data) => {
      heads.push(data.toString('latin1'));
      socket.end(answers[Math.min(heads.length, answers.length) - 1] ?? '');
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { heads, images: new ServerImages(async () => url, 'the-token', new ServerConnections()) };
}

const whole = (body: string, length = body.length): string => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${body}`;

async function read(images: ServerImages, step = STEP): Promise<string> {
  const { body } = await images.file(ID, step, signal);
  let text = '';
  for await (const part of body) text += Buffer.from(part).toString();
  return text;
}

describe('the images of the server, as a node asks for them', () => {
  it('are asked for with the token of the link, by digest, from the byte that is wanted', async () => {
    const part = `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n${BODY.slice(4)}`;
    const { heads, images } = await answering(whole(BODY), part);
    expect([await read(images), await read(images, { ...STEP, from: 4 })]).toEqual([BODY, '456789']);
    expect(heads[0]).toMatch(/^GET \/v1\/node\/images\/a{64}\/files\/b{64} HTTP\/1\.1\r\n/);
    expect(heads[0]).toMatch(/\r\nauthorization: Bearer the-token\r\n/i);
    expect(heads[0]).not.toMatch(/\r\nrange:/i);
    expect(heads[1]).toMatch(/\r\nrange: bytes=4-\r\n/i);
  });

  it.each([
    ['a redirect', 'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n', 'image_redirected'],
    ['another length', whole(`${BODY}x`), 'image_length_wrong'],
    ['no length', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n${BODY}\r\n0\r\n\r\n`, 'image_length_wrong'],
    ['two lengths', `HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 11\r\n\r\n${BODY}`, 'image_transfer_broken'],
    [
      'another part',
      `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-9/10\r\nContent-Length: 10\r\n\r\n${BODY}`,
      'image_length_wrong',
    ],
    ['packed bytes', `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n${BODY}`, 'image_answer_wrong'],
    ['that it has none', 'HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}', 'image_not_offered'],
    ['that the token is old', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}', 'image_transfer_broken'],
    ['nothing', '', 'image_transfer_broken'],
    ['no HTTP', 'SSH-2.0-x\r\n', 'image_transfer_broken'],
    ['a head without end', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(100_000)}`, 'image_transfer_broken'],
  ])('are refused when it answers with %s', async (_what, answer, code) => {
    const { heads, images } = await answering(answer);
    await expect(read(images)).rejects.toMatchObject({ code });
    expect(heads).toHaveLength(1);
  });

  it('break off where the body ends too early', async () => {
    const { images } = await answering(whole(BODY.slice(0, 4), 10));
    await expect(read(images)).rejects.toThrow();
  });

  it.each([
    ['larger than the bound', whole('x'.repeat(300 * 1024)), 'image_length_wrong'],
    ['no JSON', whole('names'), 'image_answer_wrong'],
    ['of another shape', whole('{"images":[{"name":"kernel","id":"kernel"}]}'), 'image_answer_wrong'],
    ['cut', whole('{"images":[', 100), 'image_transfer_broken'],
    ['a redirect', 'HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n', 'image_redirected'],
  ])('are not named by a list that is %s', async (_what, answer, code) => {
    const { images } = await answering(answer);
    expect(codeOf(await images.names(signal).catch((error: unknown) => error))).toBe(code);
  });

  it('come with a manifest that is as large as one may be, and no larger', async () => {
    const { images } = await answering(whole('x'.repeat(4 * 1024 * 1024)), whole('x'.repeat(4 * 1024 * 1024 + 1)));
    expect((await images.manifest(ID, signal)).length).toBe(4 * 1024 * 1024);
    await expect(images.manifest(ID, signal)).rejects.toMatchObject({ code: 'image_length_wrong' });
  });

  it('are named by a list', async () => {
    const { images } = await answering(whole(`{"images":[{"name":"kernel","id":"${ID}"}]}`));
    expect(await images.names(signal)).toEqual(new Map([['kernel', ID]]));
  });

  it('say a server that is not there', async () => {
    const images = new ServerImages(async () => new URL('http://127.0.0.1:1'), 'x', new ServerConnections());
    await expect(images.names(signal)).rejects.toMatchObject({ code: 'image_transfer_broken' });
  });
});
