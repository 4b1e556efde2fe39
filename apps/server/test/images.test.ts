import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeDataPaths } from '@firecrew/protocol';
import { ArtifactNames, ImageStore, type StoredArtifact } from '@firecrew/rootfs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NodePeer } from './support/node-peer.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';

const BIG = randomBytes(300_000);
const SMALL = Buffer.from('{}');

let folder: string;
let server: TestServer;
let peer: NodePeer;
let token: string;
let kernel: StoredArtifact;

const hex = (artifact: StoredArtifact): string => artifact.id.slice('sha256:'.length);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A link of the server's node, with the token it was given. */
async function connectNode(of: TestServer): Promise<{ peer: NodePeer; token: string | undefined }> {
  const made = new NodePeer(of);
  await made.hello();
  return { peer: made, token: (await made.next('welcome')).imagesToken };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-images-'));
  const store = new ImageStore(join(folder, 'store'));
  kernel = await store.add(async ({ target }) => {
    await writeFile(join(target, 'bzImage'), BIG);
    await writeFile(join(target, 'empty'), '');
    return { kind: 'kernel', architecture: 'amd64', version: '6.1.0', modules: [], builtIn: [], missing: [] };
  });
  await new ArtifactNames(join(folder, 'store')).set('kernel', kernel.id);
  await writeFile(join(folder, 'secret'), SMALL);
  server = await startTestServer({ images: join(folder, 'store') });
  const connected = await connectNode(server);
  peer = connected.peer;
  token = connected.token ?? '';
});
afterAll(async () => {
  peer.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Bytes of an answer. */
async function get(path: string, headers: Record<string, string> = {}, as: string | null = token) {
  const reply = await fetch(new URL(path, server.url), {
    headers: { ...(as === null ? {} : { authorization: `Bearer ${as}` }), ...headers },
  });
  return { status: reply.status, headers: reply.headers, bytes: Buffer.from(await reply.arrayBuffer()) };
}

const filePath = (sum: string = sha256(BIG), id: string = hex(kernel)): string => nodeDataPaths.imageFile(id, sum);

describe('the images of a server', () => {
  it('are listed by name', async () => {
    const { status, bytes } = await get(nodeDataPaths.images);
    expect([status, JSON.parse(bytes.toString())]).toEqual([200, { images: [{ name: 'kernel', id: kernel.id }] }]);
  });

  it.each([
    ['digest', () => hex(kernel)],
    ['name', () => 'kernel'],
  ])('come with their manifest by %s, byte for byte', async (_what, wanted) => {
    const { status, bytes, headers } = await get(nodeDataPaths.imageManifest(wanted()));
    expect([status, bytes.equals(kernel.manifestBytes), headers.get('x-firecrew-image')]).toEqual([200, true, kernel.id]);
  });

  it('come with their files by digest, whole or from a byte on', async () => {
    const whole = await get(filePath());
    expect([whole.status, whole.bytes.equals(BIG), whole.headers.get('content-length')]).toEqual([200, true, '300000']);
    const rest = await get(filePath(), { range: 'bytes=299990-' });
    expect([rest.status, rest.bytes.equals(BIG.subarray(299_990))]).toEqual([206, true]);
    expect(rest.headers.get('content-range')).toBe('bytes 299990-299999/300000');
    const empty = await get(filePath(sha256(Buffer.alloc(0))));
    expect([empty.status, empty.bytes.length]).toEqual([200, 0]);
  });

  it.each(['bytes=300000-', 'bytes=0-1,2-3', 'bytes=-5', 'lines=1-2'])(
    'refuse the range %s, and say how long the file is',
    async (range) => {
      const { status, headers, bytes } = await get(filePath(), { range });
      expect([status, headers.get('content-range')]).toEqual([416, 'bytes */300000']);
      expect(JSON.parse(bytes.toString())).toMatchObject({ error: { code: 'image_range_wrong' } });
    },
  );

  it.each([
    ['a digest that no file has', () => filePath('0'.repeat(64)), 404],
    ['the digest of the manifest', () => filePath(hex(kernel)), 404],
    ['the digest of a file that is in no artifact', () => filePath(sha256(SMALL)), 404],
    ['an artifact that is not there', () => filePath(sha256(BIG), '0'.repeat(64)), 404],
    ['a name that is not there', () => nodeDataPaths.imageManifest('payload'), 404],
    ['the name of a file', () => filePath('bzImage'), 400],
    ['a path to a file', () => filePath('..%2f..%2fsecret'), 400],
    ['a path with dots', () => nodeDataPaths.imageManifest('..%2f..%2fsecret'), 400],
    ['an absolute path', () => nodeDataPaths.imageManifest('%2fetc%2fpasswd'), 400],
    ['a path out of the names', () => nodeDataPaths.imageManifest('kernel%2f..%2f..%2fsecret'), 400],
    ['a hidden name', () => nodeDataPaths.imageManifest('.kernel'), 400],
    ['a NUL', () => nodeDataPaths.imageManifest('kernel%00'), 400],
    ['a digest in capitals', () => filePath(sha256(BIG).toUpperCase()), 400],
    ['the end of a digest', () => nodeDataPaths.imageManifest(hex(kernel).slice(-12)), 400],
    ['an id with its prefix', () => nodeDataPaths.imageManifest(kernel.id), 400],
  ])('are not given for %s', async (_what, path, status) => {
    const reply = await get(path());
    expect([reply.status, reply.bytes.includes(SMALL)]).toEqual([status, false]);
  });

  it.each([
    ['no token', () => null],
    ['a token of the operator', () => server.token],
    ['a token that was made up', () => `fcn_${'a'.repeat(43)}`],
    ['a token of an attempt', () => 'fca.e30.x'],
  ])('are not given for %s', async (_what, as) => {
    for (const path of [nodeDataPaths.images, nodeDataPaths.imageManifest('kernel'), filePath()])
      expect((await get(path, {}, as())).status).toBe(401);
  });

  it('are not given for the token of a node in calls that are not its own', async () => {
    expect((await server.call('GET', '/v1/fleet', { token })).status).toBe(401);
  });

  it('are given for the token of a link as long as it is up, and of the newest link alone', async () => {
    const next = await connectNode(server);
    await once(peer.ws, 'close');
    expect((await get(filePath())).status).toBe(401);
    const [old, given] = [token, next.token ?? ''];
    expect([(await get(filePath(), {}, given)).status, given === old]).toEqual([200, false]);
    ({ peer, token = '' } = next);
  });

  it('are not given to a node that was revoked, while its link is still up', async () => {
    await server.query('update nodes set revoked_at = now()');
    expect((await get(filePath())).status).toBe(401);
    await server.query('update nodes set revoked_at = null');
    expect((await get(filePath())).status).toBe(200);
  });

  it('are sent to one node in no more than four transfers at once', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) });
        // The head has come and nothing more is read: the transfer is under way.
        socket.write(`GET ${filePath(sha256(HUGE), hex(huge))} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`);
        await once(socket, 'readable');
        return socket;
      }),
    );
    const fifth = await get(filePath());
    expect([fifth.status, JSON.parse(fifth.bytes.toString())]).toEqual([
      429,
      { error: expect.objectContaining({ code: 'image_transfers_full' }) },
    ]);
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await get(filePath())).status).toBe(200);
  });

  let huge: StoredArtifact;
  const HUGE = Buffer.alloc(64 * 1024 * 1024);
  beforeAll(async () => {
    huge = await new ImageStore(join(folder, 'store')).add(async ({ target }) => {
      await writeFile(join(target, 'payload.squashfs'), HUGE);
      const facts = { kind: 'payload', format: 'squashfs', mountPoint: '/opt', nodeVersion: '24.0.0', unpackedBytes: 1 } as const;
      return { ...facts, architecture: 'amd64' };
    });
  });

  it('are not given where the file is not what the manifest says, or a link', async () => {
    const store = new ImageStore(join(folder, 'store'));
    const damaged = await store.add(async ({ target }) => {
      await writeFile(join(target, 'a'), 'one');
      await writeFile(join(target, 'b'), 'two');
      return { kind: 'kernel', architecture: 'amd64', version: '1', modules: [], builtIn: [], missing: [] };
    });
    await chmod(join(damaged.folder, 'a'), 0o644);
    await truncate(join(damaged.folder, 'a'), 2);
    await rm(join(damaged.folder, 'b'));
    await mkdir(join(folder, 'other'));
    await writeFile(join(folder, 'other/b'), 'two');
    await symlink(join(folder, 'other/b'), join(damaged.folder, 'b'));
    for (const text of ['one', 'two']) {
      const { status, bytes } = await get(filePath(sha256(Buffer.from(text)), hex(damaged)));
      // Its cause is in the log of the server: it names paths.
      expect([status, JSON.parse(bytes.toString())]).toEqual([500, { error: expect.objectContaining({ code: 'internal' }) }]);
      expect(bytes.toString()).not.toContain(folder);
    }
  });
});

describe('a server that is told of no image store', () => {
  it('gives its nodes no token, and nothing to anybody', async () => {
    const other = await startTestServer();
    const connected = await connectNode(other);
    expect(connected.token).toBe(undefined);
    for (const path of [nodeDataPaths.images, nodeDataPaths.imageManifest('kernel')])
      expect((await other.call('GET', path)).status).toBe(401);
    connected.peer.close();
    await other.stop();
  });
});
