import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newId } from '@firecrew/base';
import { type CreateMissionInput, type MissionEventBody, type MissionView, serverFileSchema, shimIdentitySchema } from '@firecrew/protocol';
import { FirecrewClient } from '@firecrew/sdk';
import { connectDatabase, type RunningPostgres, startPostgres, tables } from '@firecrew/store';
import { isBroker } from './broker-process.ts';
import { ManagedProcess } from './managed-process.ts';
import { linesNaming, processesOf, processesOfAttempt, type SeenProcess, sendSignal } from './processes.ts';
import { uploadRepository } from './repository.ts';
import { until } from './until.ts';
import { WITNESS_PROGRAM, Witness } from './witness.ts';
import { WrongClock } from './wrong-clock.ts';

const APPS = fileURLToPath(new URL('../../../packages/cli/bundle/apps/', import.meta.url));
/** User ids of attempts when the tests run as root; no account has them. */
const FIRST_UID = 210_000;
const UIDS = 1000;

/** How an installation is made. */
export interface InstallationOptions {
  readonly bubblewrap: 'auto' | 'off';
  readonly lease?: { readonly ttlMs: number; readonly renewEveryMs: number };
  readonly limits?: Readonly<Record<string, number>>;
  /** Further keys of the server's configuration. */
  readonly server?: Readonly<Record<string, unknown>>;
  /** Further keys of the node agent's configuration. */
  readonly node?: Readonly<Record<string, unknown>>;
  /** Gets the file that the server writes its address to, and gives the one that the node reads: for what stands between the two. */
  readonly nodeServerFile?: (serverFile: string) => string;
}

/** Wall clocks of an installation that tests set. */
export interface Clocks {
  readonly server: WrongClock;
  readonly node: WrongClock;
}

/** What a mission of a test is made of. */
export interface MissionOrder {
  readonly repository: string;
  readonly agent: string;
  readonly check?: string;
  readonly title?: string;
  readonly extra?: Partial<CreateMissionInput>;
}

/** Key of an attempt as the tests see it. */
export interface SeenAttempt {
  readonly turnId: string;
  readonly attempt: number;
  readonly marker: string;
  readonly folder: string;
}

/** A whole installation in a folder of its own: database, server and node agent as real processes, and a witness outside. */
export class Installation {
  readonly home: string;
  readonly server: ManagedProcess;
  readonly node: ManagedProcess;
  readonly client: FirecrewClient;
  readonly witness: Witness;
  readonly clocks: Clocks;
  #database: RunningPostgres;
  readonly #turns = new Set<string>();

  private constructor(home: string, token: string, database: RunningPostgres, witness: Witness) {
    const at = (name: string) => join(home, name);
    const environment = { PATH: process.env.PATH ?? '', HOME: at('person'), TMPDIR: at('tmp') };
    this.home = home;
    this.#database = database;
    this.witness = witness;
    this.clocks = { server: new WrongClock(at('scratch/server-clock')), node: new WrongClock(at('scratch/node-clock')) };
    this.server = new ManagedProcess(
      [...this.clocks.server.arguments, join(APPS, 'server.mjs'), '--config', at('run/server-config.json')],
      environment,
      at('log/server.log'),
    );
    this.node = new ManagedProcess(
      [...this.clocks.node.arguments, join(APPS, 'node-agent.mjs'), '--config', at('run/node-config.json')],
      environment,
      at('log/node-agent.log'),
    );
    this.client = this.clientOf(token);
  }

  /** Starts one and waits until it can place a turn. */
  static async start(options: InstallationOptions): Promise<Installation> {
    const home = await mkdtemp(join(tmpdir(), 'fcs-'));
    await chmod(home, 0o711);
    for (const name of ['run', 'log', 'tmp', 'person', 'node', 'scratch'])
      await mkdir(join(home, name), { mode: name === 'node' ? 0o711 : 0o700 });
    const token = `fct_${randomBytes(32).toString('base64url')}`;
    const database = await startDatabase(home);
    const installation = new Installation(home, token, database, await Witness.start());
    await installation.#configure(options, token);
    installation.server.start();
    installation.node.start();
    await installation.ready();
    return installation;
  }

  /** Waits until the server answers and the node is connected and has said what it can do. */
  async ready(): Promise<void> {
    const isReady = async () => {
      const { nodes } = await this.client.fleet();
      return nodes.some((node) => node.online && node.capabilities !== null && node.health !== null);
    };
    await until('a node that is ready', isReady).catch((error: unknown) => {
      throw new Error(`${String(error)}\n--- server\n${this.server.logTail()}\n--- node agent\n${this.node.logTail()}`);
    });
  }

  /** How the database is reached, for tests that look at what is stored. */
  get databaseUrl(): string {
    return this.#database.url;
  }

  get databasePid(): number {
    return this.#database.pid;
  }

  /** A client under any token. */
  clientOf(token: string): FirecrewClient {
    const file = join(this.home, 'run/server.json');
    return new FirecrewClient({ url: async () => serverFileSchema.parse(JSON.parse(await readFile(file, 'utf8'))).url, token });
  }

  /** Asks the database itself. */
  async query(text: string, values: readonly unknown[] = []): Promise<unknown[]> {
    const { pool, close } = await connectDatabase({ connection: this.#database.connection, schema: tables });
    try {
      return (await pool.query(text, [...values])).rows;
    } finally {
      await close();
    }
  }

  /** Waits until the killed database is settled, and starts it again. */
  async restartDatabase(): Promise<void> {
    await this.#database.exited;
    this.#database = await startDatabase(this.home);
  }

  async startMission(order: MissionOrder): Promise<MissionView> {
    const { witness } = this;
    const repository = await uploadRepository(this.client, order.repository, join(this.home, 'scratch', randomBytes(6).toString('hex')));
    const program = await this.client.upload(Buffer.from(WITNESS_PROGRAM));
    const mission = await this.client.createMission({
      title: order.title ?? 'Do the work',
      repository,
      phases: [{ kind: 'coding', task: 'do the work', ...(order.check === undefined ? {} : { doneWhenCheck: order.check }) }],
      agent: { command: withWitness(witness, order.agent), files: [{ name: 'witness.mjs', digest: program.digest, bytes: program.bytes }] },
      egress: witness.egress,
      allowUnisolated: true,
      ...order.extra,
    });
    return mission;
  }

  /** Waits for the end of a mission. */
  async ended(id: string, withinMs = 60_000): Promise<MissionView & { readonly end: NonNullable<MissionView['end']> }> {
    const look = async () => {
      const view = await this.client.mission(id);
      for (const attempt of view.phases.flatMap((phase) => phase.attempts)) this.#turns.add(`${attempt.turnId}.${attempt.attempt}.1`);
      return view.end !== null && ['completed', 'failed', 'cancelled'].includes(view.state) ? { ...view, end: view.end } : undefined;
    };
    return await until(`the end of mission ${id}`, look, withinMs).catch((error: unknown) => {
      throw new Error(`${String(error)}\n--- server\n${this.server.logTail()}\n--- node agent\n${this.node.logTail()}`);
    });
  }

  /** All events of a mission so far. */
  async events(id: string): Promise<MissionEventBody[]> {
    const all: MissionEventBody[] = [];
    for (let after = 0; ; ) {
      const page = await this.client.listEvents(id, after);
      all.push(...page.map((event) => event.body));
      const last = page.at(-1);
      if (last === undefined) return all;
      after = last.seq;
    }
  }

  /** The log of one attempt, as the server has it. */
  async log(id: string, attempt: number): Promise<Buffer> {
    const chunks = (await this.client.listLogs(id)).filter((chunk) => chunk.attempt === attempt);
    return Buffer.concat(chunks.map((chunk) => Buffer.from(chunk.data, 'base64')));
  }

  /** The newest attempt of a mission's first phase, once it runs on the node. */
  async attempt(id: string, number = 1): Promise<SeenAttempt> {
    return await until(`attempt ${number} of ${id}`, async () => {
      const view = await this.client.mission(id);
      const found = view.phases[0]?.attempts.find((item) => item.attempt === number);
      if (found === undefined) return undefined;
      const marker = `${found.turnId}.${found.attempt}.1`;
      this.#turns.add(marker);
      return { turnId: found.turnId, attempt: number, marker, folder: join(this.home, 'node/turns', `${found.turnId}.${found.attempt}`) };
    });
  }

  /** Pid of the shim of an attempt. */
  async shimPid({ folder }: SeenAttempt): Promise<number> {
    return await until(
      `the shim of ${folder}`,
      async () => shimIdentitySchema.parse(JSON.parse(await readFile(join(folder, 'shim.json'), 'utf8'))).pid,
    );
  }

  /** What is left of attempts: processes, turn folders, tokens. */
  async leftovers(): Promise<string[]> {
    const processes = [...this.#turns].flatMap((marker) => processesOfAttempt(marker).map(describe));
    const shims = processesOf(join(this.home, 'node')).filter(({ pid }) => !this.node.isRunning || pid !== this.node.pid);
    const folders = await Promise.all(
      ['node/turns', 'node/tokens', 'tmp'].map(async (name) => (await listFolder(join(this.home, name))).map((item) => `${name}/${item}`)),
    );
    return [
      ...processes,
      ...shims.filter(({ command }) => !command.includes('node-config.json') && !isBroker(command)).map(describe),
      ...folders.flat(),
    ];
  }

  /** Stops everything, and throws when anything of this installation is left: processes, sockets, mounts, files. */
  async stop(): Promise<void> {
    const left = new Set<string>();
    await until('attempts that are all gone', async () => (await this.leftovers()).length === 0, 15_000).catch(() => undefined);
    for (const item of await this.leftovers()) left.add(item);
    const nodeLog = this.node.logTail();
    await this.node.end('SIGTERM');
    await this.server.end('SIGTERM');
    await this.#database.stop();
    await this.witness.stop();
    for (const found of [...processesOf(this.home), ...[...this.#turns].flatMap((marker) => processesOfAttempt(marker))]) {
      left.add(describe(found));
      sendSignal(found.pid, 'SIGKILL');
    }
    for (const file of ['/proc/net/unix', '/proc/self/mountinfo'] as const)
      for (const line of linesNaming(file, this.home)) left.add(`${file}: ${line}`);
    await rm(this.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    if (await exists(this.home)) left.add(this.home);
    if (left.size > 0) throw new Error(`the installation left behind:\n${[...left].join('\n')}\n--- node agent\n${nodeLog}`);
  }

  async #configure(options: InstallationOptions, token: string): Promise<void> {
    const at = (name: string) => join(this.home, name);
    const keys = generateKeyPairSync('ed25519');
    const nodeId = newId('node');
    const serverFile = at('run/server.json');
    await writeFile(at('run/node.pem'), keys.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    await writeJson(at('run/server-config.json'), {
      home: at('server'),
      homeId: randomBytes(8).toString('hex'),
      serverFile,
      listen: { host: '127.0.0.1', port: 0 },
      database: this.#database.connection,
      operatorToken: token,
      localNode: { id: nodeId, name: 'local', publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64') },
      ...(options.lease === undefined ? {} : { lease: options.lease }),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...options.server,
    });
    await writeJson(at('run/node-config.json'), {
      home: at('node'),
      serverFile: options.nodeServerFile?.(serverFile) ?? serverFile,
      nodeId,
      keyFile: at('run/node.pem'),
      callerPath: process.env.PATH ?? '',
      owners: process.getuid?.() === 0 ? { firstUid: FIRST_UID, count: UIDS } : null,
      bubblewrap: options.bubblewrap,
      allowHttp: true,
      ...options.node,
    });
  }
}

/** Defines `say`, `wait_for`, `is_open` and `stream` for an agent's script. */
export function withWitness({ port }: Witness, script: string): string {
  const call = (verb: string) => `node "$FIRECREW_AGENT_DIR/witness.mjs" ${port} ${verb} "$1"`;
  return `say() { ${call('say')}; }; wait_for() { ${call('wait')}; }; is_open() { ${call('ask')}; }; stream() { ${call('stream')}; }\n${script}`;
}

async function startDatabase(home: string): Promise<RunningPostgres> {
  return await startPostgres({ dataDir: join(home, 'database'), runDir: join(home, 'pg') });
}

async function writeJson(file: string, value: unknown): Promise<void> {
  await writeFile(file, `${JSON.stringify(value)}\n`, { mode: 0o600 });
}

async function listFolder(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => []);
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

function describe({ pid, command }: SeenProcess): string {
  return `process ${pid}: ${command.slice(0, 200)}`;
}
