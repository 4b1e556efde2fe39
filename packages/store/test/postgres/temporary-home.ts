import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningPostgres, type StartPostgresOptions, startPostgres } from '../../src/postgres/start-postgres.ts';

/** A folder that the server's account can walk through, the servers started in it, and their end. */
export class TemporaryHome {
  readonly path: string;
  readonly dataDir: string;
  readonly #servers: RunningPostgres[] = [];

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), 'fc-pg-'));
    chmodSync(this.path, 0o711);
    this.dataDir = join(this.path, 'data');
  }

  options(more: Partial<StartPostgresOptions> = {}): StartPostgresOptions {
    return { dataDir: this.dataDir, runDir: join(this.path, 'run'), settings: { fsync: 'off' }, ...more };
  }

  async start(more: Partial<StartPostgresOptions> = {}): Promise<RunningPostgres> {
    const server = await startPostgres(this.options(more));
    this.#servers.push(server);
    return server;
  }

  async remove(): Promise<void> {
    for (const server of this.#servers) await server.stop();
    rmSync(this.path, { recursive: true, force: true });
  }
}
