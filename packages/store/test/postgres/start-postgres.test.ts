import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectDatabase } from '../../src/migrate/connect-database.ts';
import { isRunning, sendSignal, serverProcesses } from '../../src/postgres/inspect-process.ts';
import { settleOrphan } from '../../src/postgres/settle-orphan.ts';
import type { PostgresConnection } from '../../src/postgres/start-postgres.ts';
import { waitUntil } from '../../src/postgres/wait-until.ts';
import { TemporaryHome } from './temporary-home.ts';

let made: TemporaryHome;
let home: TemporaryHome;
beforeAll(async () => {
  made = new TemporaryHome();
  await (await made.start()).stop();
});
afterAll(() => made.remove());
beforeEach(() => {
  home = TemporaryHome.copyOf(made);
});
afterEach(() => home.remove());

/** A test about the making of a data directory. */
async function withoutData(): Promise<void> {
  await home.remove();
  home = new TemporaryHome(made.options().supportDir);
}

async function query(connection: PostgresConnection, text: string): Promise<unknown[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Lines of System V shared memory made by a process. */
function memoryOf(pid: number): string[] {
  const lines = readFileSync('/proc/sysvipc/shm', 'utf8').split('\n').slice(1);
  return lines.filter((line) => line.trim().split(/\s+/)[4] === String(pid));
}

const asRoot = process.getuid?.() === 0;

describe('a first start', () => {
  it('makes the data directory, answers over its socket and leaves nothing running after stop', async () => {
    await home.remove();
    home = new TemporaryHome();
    const server = await home.start();
    expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(server.connection).toMatchObject({ port: 5432, user: 'firecrew', database: 'firecrew' });
    await server.stop();
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(isRunning(server.pid)).toBe(false);
    expect(serverProcesses(realpathSync(home.dataDir))).toEqual([]);
    expect(existsSync(server.connection.host)).toBe(false);
    await server.stop();
  });

  it('is reached by its URL', async () => {
    const server = await home.start();
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    expect((await client.query('select current_user as who')).rows).toEqual([{ who: 'firecrew' }]);
    await client.end();
  });

  it('keeps the password beside the data for its own account only, and refuses a wrong one', async () => {
    await withoutData();
    const server = await home.start();
    expect(statSync(`${home.dataDir}.password`).mode & 0o777).toBe(0o600);
    expect(readFileSync(`${home.dataDir}.password`, 'utf8').trim()).toBe(server.connection.password);
    expect(readFileSync(`${home.dataDir}.log`, 'utf8')).not.toContain(server.connection.password);
    await expect(query({ ...server.connection, password: 'wrong' }, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  it('keeps the password of a directory that was lost, so that it can come back', async () => {
    const first = await home.start();
    await first.stop();
    renameSync(home.dataDir, `${home.dataDir}.lost`);
    const empty = await home.start();
    expect(empty.connection.password).toBe(first.connection.password);
    await empty.stop();
    rmSync(home.dataDir, { recursive: true });
    renameSync(`${home.dataDir}.lost`, home.dataDir);
    const back = await home.start();
    expect(await query(back.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await back.stop();
  });

  it('opens no address, and its socket folder bars other accounts unless the server runs as another one', async () => {
    const server = await home.start();
    expect(await query(server.connection, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
    expect(statSync(server.connection.host).mode & 0o777).toBe(asRoot ? 0o711 : 0o700);
  });

  it('applies the small sizes', async () => {
    const server = await home.start();
    const names = ['shared_buffers', 'max_connections', 'jit', 'io_method', 'max_wal_size', 'data_checksums', 'server_encoding'];
    const rows = await Promise.all(names.map(async (name) => Object.values((await query(server.connection, `show ${name}`))[0] ?? {})[0]));
    expect(rows).toEqual(['16MB', '30', 'off', 'sync', '256MB', 'on', 'UTF8']);
  });

  it('takes nothing from PG variables of the caller', async () => {
    const before = process.env.PGPORT;
    process.env.PGPORT = '1';
    try {
      const server = await home.start();
      expect(await query(server.connection, 'show port')).toEqual([{ port: '5432' }]);
    } finally {
      if (before === undefined) delete process.env.PGPORT;
      else process.env.PGPORT = before;
    }
  });

  it('never runs as root', async () => {
    const server = await home.start();
    expect(statSync(`/proc/${server.pid}`).uid).not.toBe(0);
    expect(statSync(home.dataDir).uid).toBe(statSync(`/proc/${server.pid}`).uid);
  });
});

describe('a start after an interrupted one', () => {
  it('removes a half-made data directory and begins anew', async () => {
    await withoutData();
    mkdirSync(`${home.dataDir}.init-12345/base`, { recursive: true });
    writeFileSync(`${home.dataDir}.init-12345/PG_VERSION`, '18\n');
    writeFileSync(`${home.dataDir}.init-12345.password`, 'x');
    const server = await home.start();
    expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(readdirSync(home.path).filter((name) => name.includes('.init-'))).toEqual([]);
  });

  it.each(['PG_VERSION', 'global/pg_control', 'pg_wal/archive_status'])('killed when %s had just been made begins anew', async (file) => {
    await withoutData();
    const script = fileURLToPath(new URL('./supervise-once.ts', import.meta.url));
    const supervisor = spawn(process.execPath, [script, JSON.stringify(home.options())], { stdio: ['ignore', 'ignore', 'inherit'] });
    const aside = `${home.dataDir}.init-${supervisor.pid}`;
    expect(await waitUntil(() => existsSync(join(aside, file)), 20_000)).toBe(true);
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    const server = await home.start();
    expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(readdirSync(home.path).filter((name) => name.includes('.init-'))).toEqual([]);
  });

  it('removes socket folders of earlier starts and leaves other files alone', async () => {
    const first = await home.start();
    const link = basename(first.connection.host);
    const folder = readlinkSync(first.connection.host);
    await first.stop();
    expect(readdirSync(join(home.path, 'run'))).toEqual([]);
    mkdirSync(join(home.path, 'run', `${link}-old123`));
    mkdirSync(join(home.path, 'run', 'pg-other'));
    const second = await home.start();
    expect(readlinkSync(second.connection.host)).not.toBe(folder);
    expect(readdirSync(join(home.path, 'run')).sort()).toEqual([link, 'pg-other', readlinkSync(second.connection.host)].sort());
  });

  it('is reached by a pool made before, without being told', async () => {
    const first = await home.start();
    const { pool, close } = await connectDatabase({ connection: first.connection });
    sendSignal(first.pid, 'SIGKILL');
    await first.exited;
    await home.start();
    const answered = await waitUntil(async () => (await pool.query('select 1').catch(() => undefined))?.rowCount === 1, 10_000);
    expect(answered).toBe(true);
    await close();
  });

  it('keeps rows that were committed before the server was killed', async () => {
    const first = await home.start();
    await query(first.connection, 'create table kept (id int primary key); insert into kept values (1), (2)');
    sendSignal(first.pid, 'SIGKILL');
    expect(await first.exited).toEqual({ code: null, signal: 'SIGKILL' });
    const second = await home.start();
    expect(await query(second.connection, 'select count(*)::int as n from kept')).toEqual([{ n: 2 }]);
    expect(second.connection.password).toBe(first.connection.password);
    expect(await query(second.connection, 'show dynamic_shared_memory_type')).toEqual([{ dynamic_shared_memory_type: 'mmap' }]);
    await second.stop();
    expect(memoryOf(first.pid)).toEqual([]);
  });

  it('waits for a busy backend of a killed server, and kills it', async () => {
    const first = await home.start();
    const client = new pg.Client(first.connection);
    client.on('error', () => {});
    await client.connect();
    const busy = client.query('select pg_sleep(600)').catch(() => 'broken');
    sendSignal(first.pid, 'SIGKILL');
    await first.exited;
    expect(await busy).toBe('broken');
    const second = await home.start();
    expect(await query(second.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await client.end().catch(() => {});
  });
});

describe('the pid file', () => {
  const write = (pid: number): void =>
    writeFileSync(join(home.dataDir, 'postmaster.pid'), `${pid}\n${home.dataDir}\n1700000000\n5432\n/nowhere\n\n  1  1\nready   \n`);

  it.each([2 ** 22 - 1, 0, Number.NaN, 1])('that names %d, no process of this data directory, is stale', async (pid) => {
    write(pid);
    const server = await home.start();
    expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('of a running process of the same account that works elsewhere is stale, and that process lives on', async () => {
    // The server takes a pid file for its own only when the process belongs to its account.
    const other = spawn('/bin/sleep', ['600'], { ...home.account(), cwd: '/', stdio: 'ignore' });
    try {
      write(other.pid ?? 0);
      const server = await home.start();
      expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
      expect(other.exitCode ?? other.signalCode).toBe(null);
    } finally {
      other.kill('SIGKILL');
    }
  });

  it('does not lead to the shell of a person who stands in the data directory', async () => {
    const shell = spawn('/bin/sh', ['-c', 'sleep 600; :'], { ...home.account(), cwd: home.dataDir, stdio: 'ignore', detached: true });
    try {
      write(shell.pid ?? 0);
      const server = await home.start();
      await server.stop();
      expect(shell.exitCode ?? shell.signalCode).toBe(null);
    } finally {
      // With what it started: it leads a group.
      process.kill(-(shell.pid ?? Number.NaN), 'SIGKILL');
    }
  });

  it('of a zombie is stale', async () => {
    // The shell starts a child and becomes a program that never waits for it.
    const parent = spawn('/bin/sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 600'], {
      ...home.account(),
      cwd: '/',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      const [line] = await once(parent.stdout, 'data');
      const zombie = Number(String(line).trim());
      expect(await waitUntil(() => readFileSync(`/proc/${zombie}/stat`, 'latin1').includes(') Z '), 10_000)).toBe(true);
      write(zombie);
      const server = await home.start();
      expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    } finally {
      parent.kill('SIGKILL');
    }
  });
});

describe('two supervisors', () => {
  it('never both start: the second is told who holds the folder', async () => {
    await home.start();
    await expect(home.start()).rejects.toMatchObject({ code: 'directory_locked', action: expect.stringContaining(String(process.pid)) });
  });

  it('leave one server when one dies by SIGKILL: it lives on, and the next start replaces it', async () => {
    const script = fileURLToPath(new URL('./supervise-once.ts', import.meta.url));
    const supervisor = spawn(process.execPath, [script, JSON.stringify(home.options())], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(supervisor.stdout, 'data');
    const orphan: { pid: number; connection: PostgresConnection } = JSON.parse(String(line));
    await expect(home.start()).rejects.toMatchObject({ code: 'directory_locked' });
    supervisor.kill('SIGKILL');
    await once(supervisor, 'exit');
    expect(await query(orphan.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    const warned: unknown[] = [];
    const server = await home.start({ logger: { info: () => {}, warn: (fields) => warned.push(fields.finding) } });
    expect(warned).toEqual(['stopped_orphan']);
    expect(readFileSync(`${home.dataDir}.log`, 'utf8').match(/received fast shutdown request/g)).toHaveLength(1);
    expect(isRunning(orphan.pid)).toBe(false);
    expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});

it('an orphan that does not react is killed in the end, with all its processes', async () => {
  const server = await home.start();
  const dataDir = realpathSync(home.dataDir);
  sendSignal(server.pid, 'SIGSTOP');
  expect(await settleOrphan(dataDir, { fastMs: 50, immediateMs: 3_000 })).toBe('stopped_orphan');
  expect(serverProcesses(dataDir)).toEqual([]);
  expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' });
  // The start after a kill takes away its shared memory.
  await home.start();
});

it('the server leads a session of its own, out of reach of the signals of a terminal', async () => {
  const { pid } = await home.start();
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  expect([fields[2], fields[3]]).toEqual([String(pid), String(pid)]);
});

describe('a start is refused', () => {
  it('for a data directory of another major version', async () => {
    writeFileSync(join(home.dataDir, 'PG_VERSION'), '17\n');
    await expect(home.start()).rejects.toMatchObject({ code: 'database_version_mismatch', message: expect.stringContaining('17') });
    expect(statSync(join(home.dataDir, 'base')).isDirectory()).toBe(true);
  });

  it.each(['', 'seventeen\n'])('for a data directory whose version is %j', async (version) => {
    writeFileSync(join(home.dataDir, 'PG_VERSION'), version);
    await expect(home.start()).rejects.toMatchObject({ code: 'database_folder_damaged', action: expect.stringContaining('backup') });
  });

  it('for a folder that holds something else', async () => {
    await withoutData();
    mkdirSync(home.dataDir);
    writeFileSync(join(home.dataDir, 'thesis.txt'), 'x');
    await expect(home.start()).rejects.toMatchObject({ code: 'database_folder_unknown' });
    expect(readFileSync(join(home.dataDir, 'thesis.txt'), 'utf8')).toBe('x');
  });

  it('when the password is gone', async () => {
    rmSync(`${home.dataDir}.password`);
    await expect(home.start()).rejects.toMatchObject({ code: 'database_password_missing' });
  });

  it('when the programs are missing, with the ways out', async () => {
    await expect(home.start({ binDir: join(home.path, 'nothing') })).rejects.toMatchObject({
      code: 'postgres_binaries_missing',
      action: expect.stringMatching(/FIRECREW_PG_BIN.*FIRECREW_DATABASE_URL/),
    });
  });

  it('when the account of the server cannot reach the programs', async () => {
    const binDir = join(home.path, 'locked/bin');
    mkdirSync(binDir, { recursive: true });
    for (const name of ['initdb', 'postgres']) writeFileSync(join(binDir, name), '#!/bin/sh\nexit 3\n', { mode: 0o755 });
    chmodSync(join(home.path, 'locked'), 0o700);
    // Only for another account is the folder locked.
    const code = asRoot ? 'database_folder_unreachable' : 'postgres_program_failed';
    await expect(home.start({ binDir })).rejects.toMatchObject({ code });
  });

  it('when the server itself refuses a setting, with the end of its log', async () => {
    await expect(home.start({ settings: { fsync: 'off', work_mem: 'plenty' } })).rejects.toMatchObject({
      code: 'database_start_failed',
      message: expect.stringContaining('work_mem'),
    });
    expect(readdirSync(join(home.path, 'run'))).toEqual([]);
    const server = await home.start();
    expect(await query(server.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});

it('a server that dies says so, and its folder can be started again', async () => {
  const server = await home.start();
  sendSignal(server.pid, 'SIGQUIT');
  expect((await server.exited).signal === null || (await server.exited).code === null).toBe(true);
  const again = await home.start();
  expect(again.pid).not.toBe(server.pid);
});

it('a client that keeps its connection open does not hold up stop', async () => {
  const server = await home.start();
  const socket = connect(join(server.connection.host, '.s.PGSQL.5432'));
  socket.on('error', () => {});
  await once(socket, 'connect');
  await server.stop();
  expect(isRunning(server.pid)).toBe(false);
  socket.destroy();
});
