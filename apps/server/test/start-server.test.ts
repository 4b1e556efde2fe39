import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { serverConfigSchema } from '../src/config.ts';
import { startServer } from '../src/start-server.ts';

const TOKEN = `fct_${'x'.repeat(43)}`;
let databases: TestDatabaseServer;
let folder: string;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(async () => await databases.stop());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-server-'));
});
afterEach(async () => await rm(folder, { recursive: true, force: true }));

/** Starts a server of the folder of this test on `database`. */
async function start(database: unknown, over: Record<string, unknown> = {}) {
  const config = serverConfigSchema.parse({
    home: join(folder, 'server'),
    homeId: 'home-of-tests',
    serverFile: join(folder, 'run/server.json'),
    listen: { host: '127.0.0.1', port: 0 },
    database,
    operatorToken: TOKEN,
    localNode: null,
    ...over,
  });
  return await startServer(config, pino({ level: 'silent' }), '0.0.0-test');
}

async function upload(url: string): Promise<number> {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/octet-stream' };
  return (await fetch(new URL('/v1/uploads', url), { method: 'POST', headers, body: Buffer.from('x') })).status;
}

describe('a server is not started', () => {
  it('on a port that another program has', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const address = holder.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const { connection, drop } = await databases.createDatabase();
    try {
      const refused = { code: 'listen_failed', message: expect.stringContaining(`127.0.0.1:${port}: another program has it`) };
      await expect(start(connection, { listen: { host: '127.0.0.1', port } })).rejects.toMatchObject(refused);
    } finally {
      await new Promise((resolve) => holder.close(resolve));
      await drop();
    }
  });

  it('on an address that this machine does not have', async () => {
    const { connection, drop } = await databases.createDatabase();
    await expect(start(connection, { listen: { host: '192.0.2.1', port: 0 } })).rejects.toMatchObject({ code: 'listen_failed' });
    await drop();
  });

  it('on an empty database where a store holds what an earlier one knew', async () => {
    const first = await databases.createDatabase();
    const server = await start(first.connection);
    expect(await upload(server.url)).toBe(200);
    await server.stop();
    const empty = await databases.createDatabase();
    await expect(start(empty.connection)).rejects.toMatchObject({ code: 'database_empty', action: expect.stringContaining('backup') });
    const again = await start(first.connection);
    await again.stop();
    await first.drop();
    await empty.drop();
  });

  it('on the database of another installation', async () => {
    const { connection, drop } = await databases.createDatabase();
    const server = await start(connection);
    await server.stop();
    await expect(start(connection, { homeId: 'another-home' })).rejects.toMatchObject({ code: 'home_mismatch' });
    await drop();
  });
});

it('takes over a store that was made right before its server was killed', async () => {
  const first = await databases.createDatabase();
  const server = await start(first.connection);
  await server.stop();
  await first.drop();
  const second = await databases.createDatabase();
  const next = await start(second.connection);
  expect(await upload(next.url)).toBe(200);
  await next.stop();
  await second.drop();
});
