import { CodedError, identifyProcess, isAlive, type ProcessIdentity } from '@firecrew/base';
import { type PostgresLogger, type RunningPostgres, startPostgres } from '@firecrew/store';
import * as z from 'zod';
import type { HomePaths } from '../home/home-paths.ts';
import { readState, replaceFile } from '../home/write-file.ts';
import type { DatabaseChoice } from '../settings/read-settings.ts';
import { stopProcess } from './processes.ts';
import { connectionSchema, type DatabaseConnection, type DatabaseTarget } from './service-config.ts';

/** Fast shutdown, immediate shutdown, and the end; each with its term in ms. */
const STOP_STEPS = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
] as const;

const databaseFileSchema = z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string(), connection: connectionSchema });

/** The database of the services: the home's own, started here or found running from an earlier supervisor, or one of the operator's. */
export class DatabaseRole {
  readonly #paths: HomePaths;
  readonly #logger: PostgresLogger;
  #owned: RunningPostgres | undefined;
  readonly #choice: DatabaseChoice;
  #found: ProcessIdentity | undefined;
  #connection: DatabaseConnection | undefined;

  constructor(paths: HomePaths, logger: PostgresLogger, choice: DatabaseChoice) {
    this.#choice = choice;
    this.#paths = paths;
    this.#logger = logger;
  }

  /** Whether it is the home's own. */
  get isOwn(): boolean {
    return this.#choice.kind === 'own';
  }

  /** How the server reaches it. Throws `database_ended` while the home's own has not been started. */
  target(): DatabaseTarget {
    if (this.#choice.kind === 'url') return { connectionString: this.#choice.url };
    if (this.#connection !== undefined) return this.#connection;
    throw new CodedError('database_ended', `PostgreSQL of ${this.#paths.dataDir} does not run`, { id: this.#paths.dataDir });
  }

  /** Takes over a database that lives; undefined when there is none. */
  adopt(): ProcessIdentity | undefined {
    const file = readState(this.#paths.databaseFile, databaseFileSchema);
    if (file === undefined) return undefined;
    const identity = { pid: file.pid, startTicks: file.startTicks, bootId: file.bootId };
    if (!isAlive(identity)) return undefined;
    this.#found = identity;
    this.#connection = file.connection;
    return identity;
  }

  /** Starts it and waits until it answers. Its address stays over restarts, so that a server finds the new one by itself. */
  async start(): Promise<ProcessIdentity> {
    await this.#owned?.exited;
    this.#owned = undefined;
    this.#found = undefined;
    const { database, dataDir, databaseFile } = this.#paths;
    const running = await startPostgres({ dataDir, runDir: database, logger: this.#logger });
    this.#owned = running;
    const identity = identifyProcess(running.pid);
    if (identity === undefined)
      throw new CodedError('database_ended', `PostgreSQL of ${dataDir} ended right after its start`, { id: dataDir });
    this.#connection = running.connection;
    replaceFile(databaseFile, `${JSON.stringify({ ...identity, connection: this.#connection })}\n`);
    return identity;
  }

  /** Stops it, whoever started it; false when it is still there. */
  async stop(): Promise<boolean> {
    if (this.#owned !== undefined) {
      await this.#owned.stop();
      return true;
    }
    return this.#found === undefined || (await stopProcess(this.#found, STOP_STEPS));
  }
}

/** Stops a database of which only the process is known. */
export async function stopDatabaseProcess(identity: ProcessIdentity): Promise<boolean> {
  return await stopProcess(identity, STOP_STEPS);
}
