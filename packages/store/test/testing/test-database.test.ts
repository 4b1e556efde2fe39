import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { expect, it } from 'vitest';
import { isRunning } from '../../src/postgres/inspect-process.ts';
import type { PostgresConnection } from '../../src/postgres/start-postgres.ts';
import { waitUntil } from '../../src/postgres/wait-until.ts';
import { SHARED_TEST_DATABASE, startTestDatabase } from '../../src/testing/test-database.ts';

async function query(connection: PostgresConnection, text: string): Promise<unknown[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

it('gives every test a copy of its own of the prepared database, and removes everything at the end', async () => {
  const server = await startTestDatabase({
    prepare: async (connection) => {
      await query(connection, 'create table a (n int)');
    },
  });
  const [one, two] = [await server.createDatabase(), await server.createDatabase()];
  await query(one.connection, 'insert into a values (1)');
  expect(await query(one.connection, 'select n from a')).toEqual([{ n: 1 }]);
  expect(await query(two.connection, 'select n from a')).toEqual([]);
  const open = new pg.Client(one.connection);
  open.on('error', () => {});
  await open.connect();
  await one.drop();
  await one.drop();
  await expect(query(one.connection, 'select 1')).rejects.toMatchObject({ code: '3D000' });
  await server.stop();
  expect(existsSync(server.connection.host)).toBe(false);
});

it('uses a server that the whole run shares, and takes away only its own databases', async () => {
  const server = await startTestDatabase();
  process.env[SHARED_TEST_DATABASE] = JSON.stringify(server.connection);
  try {
    const [one, two] = [await startTestDatabase(), await startTestDatabase()];
    const kept = await two.createDatabase();
    await one.createDatabase();
    await one.stop();
    expect(await query(kept.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await two.stop();
    const left = await query(server.connection, `select datname from pg_database where datname like 'test_%'`);
    expect(left).toHaveLength(1);
  } finally {
    delete process.env[SHARED_TEST_DATABASE];
    await server.stop();
  }
});

it('removes everything when what prepares it fails', async () => {
  let host = '';
  const failed = startTestDatabase({
    prepare: async (connection) => {
      host = connection.host;
      throw new Error('no fixtures');
    },
  });
  await expect(failed).rejects.toThrow('no fixtures');
  expect(existsSync(host)).toBe(false);
});

it('leaves neither server nor files behind when the test process is killed', async () => {
  const script = fileURLToPath(new URL('./serve-until-killed.ts', import.meta.url));
  const tests = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(tests.stdout, 'data');
  const { pid, home }: { pid: number; home: string } = JSON.parse(String(line));
  expect(isRunning(pid)).toBe(true);
  tests.kill('SIGKILL');
  expect(await waitUntil(() => !isRunning(pid) && !existsSync(home), 20_000)).toBe(true);
});
