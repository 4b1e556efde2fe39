import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@firecrew/base';
import { connectDatabase, tables } from '@firecrew/store';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import pg from 'pg';
import { pino } from 'pino';
import { serverConfigSchema } from '../../src/config.ts';
import { hashToken } from '../../src/http/auth.ts';
import { startServer } from '../../src/start-server.ts';

/** A server of its own database and folder, with one operator and one node that may connect. */
export interface TestServer {
  readonly url: string;
  readonly token: string;
  readonly nodeId: string;
  readonly nodeKey: KeyObject;
  readonly serverFile: string;
  call(method: string, path: string, options?: CallOptions): Promise<{ status: number; body: unknown; headers: Headers }>;
  /** A token of another caller; a new workspace unless it is told to share the operator's. */
  addCaller(role: 'operator' | 'member', shareWorkspace: boolean): Promise<string>;
  /** Rows as they lie in the database. */
  query(text: string): Promise<unknown[]>;
  stop(): Promise<void>;
}

/** Lines of the server's log that are shown with an answer that has no cause. */
const SHOWN_ERRORS = 5;

export interface CallOptions {
  readonly token?: string | null;
  readonly json?: unknown;
  readonly bytes?: Uint8Array;
  readonly headers?: Record<string, string>;
}

/** Starts a server; with `shared` its database is a fresh one in that server of databases, which the caller stops. */
export async function startTestServer(overrides: Record<string, unknown> = {}, shared?: TestDatabaseServer): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-server-'));
  const database = shared ?? (await startTestDatabase());
  const fresh = await database.createDatabase();
  const keys = generateKeyPairSync('ed25519');
  const token = `fct_${randomBytes(32).toString('base64url')}`;
  const nodeId = newId('node');
  const serverFile = join(folder, 'run', 'server.json');
  const removeAll = async (): Promise<void> => {
    await fresh.drop();
    if (shared === undefined) await database.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const read = serverConfigSchema.safeParse({
    home: join(folder, 'server'),
    homeId: 'home-of-tests',
    serverFile,
    listen: { host: '127.0.0.1', port: 0 },
    database: fresh.connection,
    operatorToken: token,
    localNode: { id: nodeId, name: 'local', publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64') },
    ...overrides,
  });
  // A server that does not start leaves nothing behind either.
  const errors: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) });
  const starts = read.success ? startServer(read.data, log, '0.0.0-test') : Promise.reject(read.error);
  const server = await starts.catch(async (error: unknown) => {
    await removeAll();
    throw error;
  });
  return {
    url: server.url,
    token,
    nodeId,
    nodeKey: keys.privateKey,
    serverFile,
    call: async (method, path, options = {}) => {
      const reply = await call(server.url, token, method, path, options);
      // What such an answer leaves out is what a failed test has to show.
      if (reply.status === 500) process.stderr.write(`${method} ${path}: 500\n${errors.slice(-SHOWN_ERRORS).join('')}`);
      return reply;
    },
    addCaller: async (role, shareWorkspace) => {
      const connected = await connectDatabase({ connection: fresh.connection, schema: tables });
      const [own] = await connected.db.select().from(tables.workspaces);
      const workspaceId = shareWorkspace && own !== undefined ? own.id : newId('workspace');
      if (!shareWorkspace) await connected.db.insert(tables.workspaces).values({ id: workspaceId, name: workspaceId });
      const other = `fct_${randomBytes(32).toString('base64url')}`;
      await connected.db.insert(tables.apiTokens).values({ id: newId('token'), workspaceId, name: role, role, hash: hashToken(other) });
      await connected.close();
      return other;
    },
    query: async (text) => {
      const client = new pg.Client(fresh.connection);
      await client.connect();
      const { rows } = await client.query(text);
      await client.end();
      return rows;
    },
    stop: async () => {
      await server.stop();
      await removeAll();
    },
  };
}

async function call(url: string, own: string, method: string, path: string, options: CallOptions) {
  const token = options.token === undefined ? own : options.token;
  const body = options.json === undefined ? options.bytes : JSON.stringify(options.json);
  const reply = await fetch(new URL(path, url), {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(options.json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(options.bytes === undefined ? {} : { 'content-type': 'application/octet-stream' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await reply.text();
  return { status: reply.status, headers: reply.headers, body: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
