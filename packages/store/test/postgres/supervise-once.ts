import { startPostgres } from '../../src/postgres/start-postgres.ts';

// A supervisor that starts the server it is told to, says which, and stays until it is killed.
const options: unknown = JSON.parse(process.argv[2] ?? '');
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
if (typeof options !== 'object' || options === null || !('dataDir' in options) || !('runDir' in options)) throw new Error('no options');
const supportDir = 'supportDir' in options ? { supportDir: text(options.supportDir) } : {};
const server = await startPostgres({
  dataDir: text(options.dataDir),
  runDir: text(options.runDir),
  settings: { fsync: 'off' },
  ...supportDir,
});
process.stdout.write(`${JSON.stringify({ pid: server.pid, connection: server.connection })}\n`);
