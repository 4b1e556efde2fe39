import { mkdirSync, rmSync, utimesSync } from 'node:fs';
import { CodedError, isAlive, type ProcessIdentity, signalProcess } from '@firecrew/base';
import type { Home } from '../home/open-home.ts';
import { createFile, readText, replaceFile } from '../home/write-file.ts';
import { checkBackends } from '../settings/backend-files.ts';
import { type DatabaseChoice, readStarted, writeStarted } from '../settings/read-settings.ts';
import { chooseDatabase, type DatabaseCall } from '../supervisor/choose-database.ts';
import { OWN_DATABASE } from '../supervisor/decide-database.ts';
import { newProblem } from '../supervisor/decide-supervision.ts';
import { locateApps } from '../supervisor/locate-apps.ts';
import { serviceEnvironment, startDetached, stopProcess } from '../supervisor/processes.ts';
import { readJoined } from '../supervisor/service-config.ts';
import { askHolder, lockName, lockTaken } from '../supervisor/start-lock.ts';
import { type RoleProblem, readProblems, readProcesses } from '../supervisor/supervisor-state.ts';
import { type FoundServer, findServer, generationFault } from './find-server.ts';

/** How long services may take until they are ready, in ms; the first start makes a database. */
export const START_TIMEOUT_MS = 120_000;
const POLL_MS = 100;
/** A supervisor stops what it started before it ends. In ms. */
const GIVE_UP_STEPS = [['SIGTERM', 75_000]] as const;

/** How services are started. */
export interface EnsureOptions extends DatabaseCall {
  /** Go on until `firecrew down`, rather than until nobody uses them. */
  readonly keep: boolean;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Told once, when something has to be started. */
  readonly onStart?: (() => void) | undefined;
}

/** The services as they run now. `started` is true when this call started the supervisor. */
export interface RunningServices {
  readonly url: string | undefined;
  readonly started: boolean;
}

/** Remembers that somebody uses this home now. */
export function touchHome(home: Home, env: EnsureOptions['env']): void {
  const { lastUse, callerPath, run } = home.paths;
  mkdirSync(run, { recursive: true, mode: 0o700 });
  createFile(lastUse, '');
  utimesSync(lastUse, new Date(), new Date());
  const path = env.FIRECREW_CALLER_PATH ?? env.PATH;
  if (path !== undefined && path !== '' && readText(callerPath) !== path) replaceFile(callerPath, path);
}

/** Whether a supervisor holds this home. Throws `home_lock_taken` when somebody else holds its lock. */
export async function isSupervised(home: Home): Promise<boolean> {
  const answer = await askHolder(lockName(home.paths.root, process.getuid?.() ?? 0), home.homeId, home.paths.root);
  if (answer.kind === 'unknown') throw lockTaken(home.paths.root);
  return answer.kind === 'holder';
}

/**
 * Starts what is missing and waits until it is ready.
 * Throws `generation_mismatch`, `home_lock_taken`, `start_timed_out`, the codes of `chooseDatabase`, or the code of the role that could not be
 * started.
 */
export async function ensureRunning(home: Home, options: EnsureOptions): Promise<RunningServices> {
  touchHome(home, options.env);
  const { supervisor, roles, shims } = readProcesses(home.paths);
  const wasIdle = shims.length === 0 && [supervisor, ...Object.values(roles)].every((process) => process === undefined);
  const keeps = options.keep && createFile(home.paths.keep, '');
  const own: OwnSupervisor = { spawned: undefined, started: false };
  try {
    return { url: await untilReady(home, options, own), started: own.started };
  } catch (error) {
    // One that could not do it is not left to try for ever with settings that may be mended meanwhile.
    if (keeps) rmSync(home.paths.keep, { force: true });
    const isLeft = wasIdle && options.signal?.aborted !== true;
    if (isLeft && own.spawned !== undefined) await stopProcess(own.spawned, GIVE_UP_STEPS);
    throw error;
  }
}

/** The supervisor that this call started. */
interface OwnSupervisor {
  spawned: ProcessIdentity | undefined;
  started: boolean;
}

async function untilReady(home: Home, options: EnsureOptions, own: OwnSupervisor): Promise<string | undefined> {
  const joined = readJoined(home) !== undefined;
  const end = performance.now() + (options.timeoutMs ?? START_TIMEOUT_MS);
  const before = readProblems(home.paths);
  let nudged = false;
  for (;;) {
    options.signal?.throwIfAborted();
    const supervised = await isSupervised(home);
    if (!supervised && (own.spawned === undefined || !isAlive(own.spawned))) {
      if (!own.started) options.onStart?.();
      own.spawned = await startSupervisor(home, options);
      own.started = true;
    }
    if (supervised) {
      const found = await readiness(home, joined);
      if (found !== undefined) return found.url;
      demandNoProblem(home, before);
      if (!nudged && readProblems(home.paths).length > 0) {
        // Its next try may be half a minute away.
        const { supervisor } = readProcesses(home.paths);
        if (supervisor !== undefined) signalProcess(supervisor, 'SIGHUP');
        nudged = true;
      }
    }
    if (performance.now() >= end) throw await timedOut(home);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** The URL of what is ready; undefined while it is not. A node that joined another server has none. */
async function readiness(home: Home, joined: boolean): Promise<{ url: string | undefined } | undefined> {
  if (joined) return readProcesses(home.paths).roles.nodeAgent === undefined ? undefined : { url: undefined };
  const found = await findServer(home);
  demandGeneration(found);
  return found.ready ? { url: found.url } : undefined;
}

/** Throws `generation_mismatch` for a server that speaks another generation. */
export function demandGeneration(found: FoundServer): void {
  const isDead = !found.ready && found.reason === 'dead';
  const fault = found.file === undefined || isDead ? undefined : generationFault(found.file);
  if (fault === undefined) return;
  throw new CodedError('generation_mismatch', `the running server is of version ${found.file?.version}: ${fault}`, {
    action: 'Stop it with the firecrew that started it (firecrew down), then run this command again.',
  });
}

async function startSupervisor(home: Home, options: EnsureOptions): Promise<ProcessIdentity | undefined> {
  const { paths } = home;
  // Told here, before anything is started: the server would only say so in its log, again and again.
  if (readJoined(home) === undefined) checkBackends(options.settings);
  const database = livingDatabase(home, options) ?? (await chooseDatabase(home, options));
  writeStarted(paths, { settings: options.settings, database });
  return startDetached({
    args: [locateApps().command, 'supervise', '--home', paths.root],
    logFile: `${paths.logs}/supervisor.log`,
    env: serviceEnvironment(options.env, { FIRECREW_CALLER_PATH: options.env.FIRECREW_CALLER_PATH ?? options.env.PATH ?? '' }),
  });
}

/** The database of services that outlived their supervisor: the next one adopts them as they are. */
function livingDatabase({ paths }: Home, { settings, onNote }: EnsureOptions): DatabaseChoice | undefined {
  const { server, database } = readProcesses(paths).roles;
  const living = server === undefined && database === undefined ? undefined : readStarted(paths)?.database;
  const { databaseUrl } = settings;
  if (living !== undefined && databaseUrl !== undefined && databaseUrl !== (living.kind === 'own' ? OWN_DATABASE : living.url))
    onNote?.('another database is named than that of the services which still run: run `firecrew down` and `firecrew up` to use it');
  return living;
}

/** A database or server that cannot be started is told at once. */
function demandNoProblem(home: Home, before: readonly RoleProblem[]): void {
  const problem = newProblem(before, readProblems(home.paths));
  if (problem === undefined) return;
  // any code: it comes from the part that could not be started
  throw new CodedError(problem.code, problem.message, problem.action === null ? {} : { action: problem.action });
}

async function timedOut(home: Home): Promise<CodedError> {
  const found = await findServer(home);
  const reason = found.ready ? 'ready' : found.reason;
  return new CodedError('start_timed_out', `the services of ${home.paths.root} are not ready (${reason})`, {
    id: home.paths.root,
    action: `Read ${home.paths.logs}/supervisor.log and ${home.paths.logs}/server.log, or run firecrew doctor.`,
  });
}
