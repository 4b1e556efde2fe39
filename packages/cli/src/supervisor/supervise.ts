import { CodedError, codeOf, identifyProcess, isAlive, messageOf, type ProcessIdentity, readBootId, signalProcess } from '@firecrew/base';
import type { Home } from '../home/open-home.ts';
import { readText } from '../home/write-file.ts';
import { findServer } from '../server/find-server.ts';
import type { StartedSettings } from '../settings/read-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { DatabaseRole } from './database-role.ts';
import { countFailure, decideSupervision, ROLES, type Role, type RoleView, type SupervisionStep } from './decide-supervision.ts';
import { IdleWatch } from './idle-watch.ts';
import { type AppEntries, demandEntry } from './locate-apps.ts';
import { ProblemBook, serviceLog } from './problem-book.ts';
import { findByConfig, serviceEnvironment, startDetached, stopProcess } from './processes.ts';
import { runsAsServer, serverAccount } from './server-account.ts';
import { prepareServerProgram, serverEnvironment } from './server-program.ts';
import { readJoined, writeNodeConfig, writeServerConfig } from './service-config.ts';
import { readProcesses, writeSupervisorFile } from './supervisor-state.ts';

const TICK_MS = 200;
const READY_EVERY_MS = 2_000;
const IDLE_EVERY_MS = 5_000;
/** A server without its database, or one that hangs, is not given long. In ms. */
const REPLACE_STEPS = [
  ['SIGTERM', 3_000],
  ['SIGKILL', 3_000],
] as const;
/** In ms. A node agent hands over its shims; a server ends its streams and waits for deliveries. */
export const STOP_STEPS = [
  ['SIGTERM', 15_000],
  ['SIGKILL', 3_000],
] as const;

interface RoleState {
  readonly wanted: boolean;
  identity: ProcessIdentity | undefined;
  startedAtMs: number;
  endedAtMs: number | undefined;
  failures: number;
  busy: boolean;
}

/** What a supervisor says. */
export interface SuperviseLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** Keeps the services of one home running until it is stopped; adopts those that an earlier one left. */
export class Supervisor {
  readonly #home: Home;
  readonly #settings: Settings;
  readonly #apps: AppEntries;
  readonly #log: SuperviseLog;
  readonly #database: DatabaseRole;
  readonly #roles: Record<Role, RoleState>;
  readonly #problems: ProblemBook;
  #restarts: number;
  #written = '';
  #path = '';
  #unreadySinceMs: number | undefined;
  #wasReady = false;
  #stopping = false;

  constructor(options: StartedSettings & { home: Home; apps: AppEntries; log: SuperviseLog }) {
    this.#home = options.home;
    this.#settings = options.settings;
    this.#apps = options.apps;
    this.#log = options.log;
    this.#database = new DatabaseRole(options.home.paths, options.log, options.database);
    this.#problems = new ProblemBook(options.home.paths);
    const joined = readJoined(options.home) !== undefined;
    const role = (wanted: boolean): RoleState => {
      return { wanted, identity: undefined, startedAtMs: 0, endedAtMs: undefined, failures: 0, busy: false };
    };
    this.#roles = {
      database: role(!joined && this.#database.isOwn),
      server: role(!joined),
      nodeAgent: role(true),
    };
    this.#restarts = readProcesses(options.home.paths).restarts;
  }

  /** Runs until `stop` is called, the home is gone, or nobody has used it for long. */
  async run(): Promise<void> {
    this.#problems.open();
    this.#adopt();
    const use = new IdleWatch(this.#home, this.#settings.idleStopMs);
    let readyAt = 0;
    let idleAt = performance.now() + IDLE_EVERY_MS;
    while (!this.#stopping) {
      this.#notice();
      for (const step of decideSupervision(this.#view())) void this.#carryOut(step);
      this.#followCallerPath();
      this.#write();
      const now = performance.now();
      if (now >= readyAt) {
        await this.#lookReady();
        readyAt = now + READY_EVERY_MS;
      }
      if (now >= idleAt) {
        if (await use.isOver()) {
          this.#log.info({}, 'nobody has used this home for long, or it is gone: stopping');
          break;
        }
        idleAt = performance.now() + IDLE_EVERY_MS;
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    await this.#stopAll();
  }

  stop(): void {
    this.#stopping = true;
  }

  /** Starts at once what waits for its next try: somebody wants it now, and may have mended what was wrong. */
  retryNow(): void {
    for (const role of ROLES) this.#roles[role].endedAtMs = undefined;
  }

  #adopt(): void {
    const left = readProcesses(this.#home.paths).roles;
    const database = this.#roles.database.wanted ? this.#database.adopt() : undefined;
    const { serverConfig, nodeConfig } = this.#home.paths;
    const server = left.server ?? findByConfig(serverConfig, serverAccount()?.uid ?? process.getuid?.());
    const found = { database, server, nodeAgent: left.nodeAgent ?? findByConfig(nodeConfig, process.getuid?.()) };
    for (const role of ROLES) {
      const identity = found[role];
      if (identity === undefined || !this.#roles[role].wanted) continue;
      this.#roles[role].identity = identity;
      this.#roles[role].startedAtMs = performance.now();
      this.#log.info({ role, pid: identity.pid }, 'adopted a living process');
      // An earlier version ran it as root: its successor gets the account that is meant for it.
      if (role === 'server' && !runsAsServer(identity.pid)) signalProcess(identity, 'SIGTERM');
    }
    this.#path = readText(this.#home.paths.callerPath) ?? '';
  }

  #notice(): void {
    const now = performance.now();
    for (const role of ROLES) {
      const state = this.#roles[role];
      if (state.busy || state.identity === undefined || isAlive(state.identity)) continue;
      this.#log.warn({ role, pid: state.identity.pid }, 'a process ended and is started again');
      state.failures = countFailure(state.failures, now - state.startedAtMs);
      state.endedAtMs = now;
      this.#problems.ended(role, state.identity.pid, state.failures);
      state.identity = undefined;
      this.#restarts += 1;
      if (role === 'server') this.#wasReady = false;
    }
  }

  #view() {
    const view = (role: Role): RoleView => {
      const { wanted, identity, busy, failures, endedAtMs } = this.#roles[role];
      return { wanted, alive: identity !== undefined, busy, failures, endedAtMs };
    };
    const roles = { database: view('database'), server: view('server'), nodeAgent: view('nodeAgent') };
    return { nowMs: performance.now(), roles, unreadySinceMs: this.#unreadySinceMs, wasReady: this.#wasReady };
  }

  async #carryOut(step: SupervisionStep): Promise<void> {
    const state = this.#roles[step.role];
    state.busy = true;
    try {
      if (step.act === 'replace') {
        this.#log.warn({ role: step.role, why: step.why }, 'a process is replaced');
        if (state.identity !== undefined) await stopProcess(state.identity, REPLACE_STEPS);
      } else {
        state.identity = await this.#start(step.role);
        state.startedAtMs = performance.now();
        if (step.role === 'server') this.#unreadySinceMs = undefined;
        this.#log.info({ role: step.role, pid: state.identity.pid }, 'started');
        // A server is well only when it answers.
        if (step.role !== 'server') this.#problems.isWell(step.role);
      }
    } catch (error) {
      this.#log.warn({ role: step.role, err: messageOf(error), code: codeOf(error) }, 'a process could not be started');
      state.failures += 1;
      state.endedAtMs = performance.now();
      this.#problems.notStarted(step.role, error);
    } finally {
      state.busy = false;
    }
  }

  async #start(role: Role): Promise<ProcessIdentity> {
    if (role === 'database') return await this.#database.start();
    const logFile = serviceLog(this.#home.paths, role);
    const identity = role === 'server' ? await this.#startServer(logFile) : this.#startNodeAgent(logFile);
    if (identity !== undefined) return identity;
    throw new CodedError('process_ended', `the ${role} ended right after its start`, { id: role, action: `Read ${logFile}.` });
  }

  async #startServer(logFile: string): Promise<ProcessIdentity | undefined> {
    const { paths } = this.#home;
    const { node, entry, account } = await prepareServerProgram(paths, this.#apps);
    const config = writeServerConfig(this.#home, this.#settings, this.#database.target());
    const env = account === undefined ? serviceEnvironment(process.env) : serverEnvironment(serviceEnvironment(process.env), paths.server);
    return startDetached({ node, args: [entry, '--config', config], logFile, env, account });
  }

  #startNodeAgent(logFile: string): ProcessIdentity | undefined {
    const entry = demandEntry(this.#apps.nodeAgent);
    const config = writeNodeConfig(this.#home, this.#settings);
    return startDetached({ args: [entry, '--config', config], logFile, env: serviceEnvironment(process.env) });
  }

  /** A caller with another PATH brings other programs; the node agent reads it at its start, and its shims go on meanwhile. */
  #followCallerPath(): void {
    const path = readText(this.#home.paths.callerPath) ?? '';
    if (path === this.#path) return;
    this.#path = path;
    const { identity, busy } = this.#roles.nodeAgent;
    if (identity === undefined || busy) return;
    this.#roles.nodeAgent.busy = true;
    this.#log.info({ pid: identity.pid }, 'the PATH of the caller is another one: the node agent starts anew');
    void stopProcess(identity, STOP_STEPS).finally(() => {
      const state = this.#roles.nodeAgent;
      state.identity = undefined;
      state.endedAtMs = undefined;
      state.busy = false;
    });
  }

  async #lookReady(): Promise<void> {
    const { wanted, identity, busy } = this.#roles.server;
    if (!wanted || identity === undefined || busy) {
      this.#unreadySinceMs = undefined;
      return;
    }
    const found = await findServer(this.#home);
    if (found.ready) {
      this.#unreadySinceMs = undefined;
      this.#wasReady = true;
      this.#problems.isWell('server');
    } else this.#unreadySinceMs ??= performance.now();
  }

  async #stopAll(): Promise<void> {
    const { server, nodeAgent, database } = this.#roles;
    const left: string[] = [];
    // What is being started now is waited for, so that nothing is left behind.
    while (ROLES.some((role) => this.#roles[role].busy)) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    if (nodeAgent.identity !== undefined && !(await stopProcess(nodeAgent.identity, STOP_STEPS))) left.push('node agent');
    if (server.identity !== undefined && !(await stopProcess(server.identity, STOP_STEPS))) left.push('server');
    if (database.identity !== undefined && !(await this.#database.stop())) left.push('database');
    if (left.length > 0) this.#log.warn({ left }, 'could not be stopped');
    for (const role of ROLES) {
      const state = this.#roles[role];
      if (state.identity !== undefined && !isAlive(state.identity)) state.identity = undefined;
    }
    this.#write(true);
  }

  #write(ending = false): void {
    if (readText(this.#home.paths.identity) === undefined) return;
    const own = ending ? undefined : identifyProcess(process.pid);
    const view = (identity: ProcessIdentity | undefined) =>
      identity === undefined ? null : { pid: identity.pid, startTicks: identity.startTicks };
    const { database, server, nodeAgent } = this.#roles;
    const file = {
      supervisor: view(own),
      database: view(database.identity),
      server: view(server.identity),
      nodeAgent: view(nodeAgent.identity),
      restarts: this.#restarts,
      bootId: readBootId(),
    };
    const text = JSON.stringify(file);
    // Read again each time: what somebody else damaged is mended.
    if (text === this.#written && readText(this.#home.paths.supervisorFile)?.trimEnd() === text) return;
    writeSupervisorFile(this.#home.paths, file);
    this.#written = text;
  }
}
