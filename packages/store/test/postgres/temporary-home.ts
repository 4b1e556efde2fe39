import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningPostgres, type StartPostgresOptions, startPostgres } from '../../src/postgres/start-postgres.ts';

/** A folder that the server's account can walk through, the servers started in it, and their end. */
export class TemporaryHome {
  readonly path: string;
  readonly dataDir: string;
  readonly #supportDir: string;
  readonly #servers: RunningPostgres[] = [];

  /** Programs installed in another home may be used, so that not each test copies them. */
  constructor(supportDir?: string) {
    this.path = mkdtempSync(join(tmpdir(), 'fc-pg-'));
    chmodSync(this.path, 0o711);
    this.dataDir = join(this.path, 'data');
    this.#supportDir = supportDir ?? join(this.path, 'support');
  }

  /** A home with the stopped database of another one. */
  static copyOf(other: TemporaryHome): TemporaryHome {
    const home = new TemporaryHome(other.#supportDir);
    // With owners and modes, which Node's own copy does not keep.
    for (const name of ['data', 'data.password']) execFileSync('cp', ['-a', join(other.path, name), join(home.path, name)]);
    return home;
  }

  options(more: Partial<StartPostgresOptions> = {}): StartPostgresOptions {
    return { dataDir: this.dataDir, runDir: join(this.path, 'run'), supportDir: this.#supportDir, settings: { fsync: 'off' }, ...more };
  }

  async start(more: Partial<StartPostgresOptions> = {}): Promise<RunningPostgres> {
    const server = await startPostgres(this.options(more));
    this.#servers.push(server);
    return server;
  }

  /** The account that the data belongs to and the server runs as. */
  account(): { readonly uid: number; readonly gid: number } {
    const { uid, gid } = statSync(this.dataDir);
    return { uid, gid };
  }

  async remove(): Promise<void> {
    for (const server of this.#servers) await server.stop();
    rmSync(this.path, { recursive: true, force: true });
  }
}
