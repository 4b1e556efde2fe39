import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CodedError, codeOf, identifyProcess, type MissionId, parseId } from '@firecrew/base';
import { listOwnAddresses } from '@firecrew/egress-proxy';
import { GENERATION, type ServerFile } from '@firecrew/protocol';
import {
  type ConnectedDatabase,
  connectDatabase,
  migrateDatabase,
  type PostgresConnection,
  PostgresMissionStore,
  startWakeups,
  tables,
  type Wakeups,
} from '@firecrew/store';
import { sweepScratchFolders } from '@firecrew/workspace';
import { eq, sql } from 'drizzle-orm';
import pg from 'pg';
import type { Logger } from 'pino';
import type { ServerConfig } from './config.ts';
import type { ServerContext } from './context.ts';
import { DeliveryDesk } from './delivery/deliver-phase.ts';
import { recipeOf } from './delivery/make-base.ts';
import { RepositoryCache } from './delivery/repository-cache.ts';
import { driveMission } from './driver/drive-mission.ts';
import { topologyPlanner } from './driver/plan-run.ts';
import { startLoops } from './driver/start-loops.ts';
import { endOf } from './end-mission.ts';
import { AttemptTokens } from './http/auth.ts';
import { buildApp } from './http/build-app.ts';
import { ChangeFeed } from './http/change-feed.ts';
import { prepareInstallation } from './installation.ts';
import { serveNodeLinks } from './nodes/node-link.ts';
import { NodeRegistry } from './nodes/node-registry.ts';
import { OwnAddresses } from './nodes/own-addresses.ts';
import { EgressCounters } from './policy/egress-counters.ts';
import { PolicyDesk } from './policy/policy-desk.ts';
import { tellNodes } from './policy/tell-nodes.ts';
import { settleSeat } from './seat-budgets.ts';

/** A server that listens. */
export interface RunningServer {
  readonly url: string;
  /** Looks at the policy file now, in place of at the next look. */
  reloadPolicy(): Promise<void>;
  stop(): Promise<void>;
}

type Schema = typeof tables;

/** Starts a server: database, migrations, stores, HTTP, node links, wake-ups and loops, in this order. */
export async function startServer(config: ServerConfig, log: Logger, version: string): Promise<RunningServer> {
  // First of all: a policy that cannot be used is told before anything is there to be used without it.
  const policy = await PolicyDesk.open(config, log);
  await mkdir(config.home, { recursive: true, mode: 0o700 });
  const database = await connectDatabase<Schema>({
    ...targetOf(config),
    schema: tables,
    onError: (error) => log.warn({ err: error }, 'a database connection broke'),
  });
  await migrateDatabase({ pool: database.pool, folder: migrationsFolder() });
  const { context, wakeups, start } = await compose(config, log, version, database, policy);
  const app = await buildApp(context);
  await listen(app, config.listen);
  const sockets = serveNodeLinks(app, context);
  const queue = await start();
  policy.onReplaced(() => tellNodes(context));
  const loops = startLoops(context);
  const address = app.server.address() as AddressInfo;
  const url = `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
  await writeServerFile(config, url, version);
  log.info({ url }, 'server is ready');
  return {
    url,
    reloadPolicy: async () => void (await policy.reload(true)),
    stop: async () => {
      await rm(config.serverFile, { force: true });
      await loops.stop();
      for (const socket of sockets.clients) socket.close(1001, 'server stops');
      await queue.stop();
      await context.deliveries.idle();
      await app.close();
      sockets.close();
      wakeups.closed = true;
      await context.feed.stop();
      await database.close();
    },
  };
}

/** Builds what the parts share. The queue starts after the HTTP face, so a wake-up finds everything there. */
async function compose(config: ServerConfig, log: Logger, version: string, database: ConnectedDatabase<Schema>, policy: PolicyDesk) {
  const { db } = database;
  const installation = await prepareInstallation(db, config, join(config.home, 'blobs'));
  const wakeups: { queue: Wakeups | undefined; closed: boolean } = { queue: undefined, closed: false };
  const store = new PostgresMissionStore({
    db,
    planner: topologyPlanner,
    endOf,
    settleSeat,
    wake: async (missionId, tx) => await wakeups.queue?.wake(missionIdOf(missionId), { tx }),
  });
  const context: ServerContext = {
    config,
    log,
    db,
    store,
    version,
    blobs: installation.blobs,
    epoch: installation.epoch,
    tokens: new AttemptTokens(installation.attemptKey),
    nodes: new NodeRegistry(),
    feed: new ChangeFeed(),
    repositories: new RepositoryCache(join(config.home, 'repositories'), installation.blobs, async (missionId) => {
      const [row] = await db.select().from(tables.missions).where(eq(tables.missions.id, missionId));
      return row === undefined ? undefined : await recipeOf(context, row);
    }),
    deliveries: new DeliveryDesk(),
    policy,
    egress: new EgressCounters(),
    ownAddresses: ownAddressesOf(config, log, db),
    clock: () => performance.now(),
    wake: async (missionId) => await wakeups.queue?.wake(missionIdOf(missionId)),
  };
  await context.repositories.removeLeftovers();
  await sweepScratchFolders().catch((error: unknown) =>
    log.warn({ err: error }, 'scratch folders of killed processes could not be removed'),
  );
  await context.feed.start(() => new pg.Client(clientConfig(config)), log);
  const start = async () => {
    const queue = await startWakeups({
      connection: config.database,
      onWakeup: (missionId) => driveMission(context, missionId),
      onError: (error, mission) => log.warn({ err: error, mission }, 'a wake-up failed and is repeated'),
    });
    wakeups.queue = queue;
    const running = await db.select({ id: tables.missions.id }).from(tables.missions).where(sql`${tables.missions.state} = 'running'`);
    for (const row of running) await context.wake(row.id);
    return queue;
  };
  return { context, wakeups, start };
}

function ownAddressesOf(config: ServerConfig, log: Logger, db: ConnectedDatabase<Schema>['db']): OwnAddresses {
  // A client that is not connected knows the host as every connection of the server does, by URL, parts or environment.
  const { host } = new pg.Client(clientConfig(config));
  return new OwnAddresses({
    databaseHost: host.startsWith('/') ? null : host.replace(/^\[|\]$/g, ''),
    interfaces: listOwnAddresses,
    lookUp: async (name) => await lookup(name, { all: true }),
    askDatabase: async () => {
      const { rows } = await db.execute<{ address: string | null }>(sql`select host(inet_server_addr()) as address`);
      return rows[0]?.address ?? null;
    },
    log,
  });
}

async function listen(app: Awaited<ReturnType<typeof buildApp>>, { host, port }: ServerConfig['listen']): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    const why = LISTEN_FAULTS[codeOf(cause) ?? ''];
    if (why === undefined) throw cause;
    throw new CodedError('listen_failed', `the server cannot listen on ${host}:${port}: ${why}`, {
      id: `${host}:${port}`,
      action: 'Choose another address or port (`listen`), or end what holds it.',
      cause,
    });
  }
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has it',
  EADDRNOTAVAIL: 'no interface of this machine has that address',
  EACCES: 'this account may not use that port',
  ENOTFOUND: 'the name has no address',
};

function missionIdOf(text: string): MissionId {
  const id = parseId('mission', text);
  if (id === undefined) throw new CodedError('mission_not_found', `${JSON.stringify(text)} is not a mission id`);
  return id;
}

function targetOf(config: ServerConfig): { url: string } | { connection: PostgresConnection } {
  return 'connectionString' in config.database ? { url: config.database.connectionString } : { connection: config.database };
}

function clientConfig(config: ServerConfig): pg.ClientConfig {
  return { ...config.database, application_name: 'firecrew-feed', keepAlive: true };
}

/** The migrations travel beside the bundle; in a checkout they lie in the store's package. */
function migrationsFolder(): string {
  const places = ['./migrations', '../../../packages/store/migrations'].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const found = places.find((folder) => existsSync(folder));
  if (found === undefined) throw new CodedError('migrations_unreadable', `no migrations at ${places.join(' or ')}`);
  return found;
}

/** Written as a whole, so that a reader never sees half of it. */
async function writeServerFile(config: ServerConfig, url: string, version: string): Promise<void> {
  const own = identifyProcess(process.pid);
  if (own === undefined) throw new CodedError('unavailable', 'this process cannot be identified');
  const file: ServerFile = { ...own, url, homeId: config.homeId, version, generation: GENERATION };
  await mkdir(dirname(config.serverFile), { recursive: true, mode: 0o700 });
  const temporary = `${config.serverFile}.${randomBytes(6).toString('hex')}`;
  await writeFile(temporary, `${JSON.stringify(file)}\n`, { mode: 0o600 });
  await rename(temporary, config.serverFile);
}
