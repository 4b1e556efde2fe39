import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { CodedError, messageOf } from '@firecrew/base';
import { destination, pino } from 'pino';
import { readServerConfig } from './config.ts';
import { startServer } from './start-server.ts';

const USAGE = `firecrew server: the control plane of one installation

usage: node main.js --config FILE

  --config FILE   the configuration, JSON; see docs/operating.md
`;

const { values } = parseArgs({ options: { config: { type: 'string' }, help: { type: 'boolean' } } });
if (values.help === true || values.config === undefined) {
  process.stderr.write(USAGE);
  process.exit(values.help === true ? 0 : 2);
}

try {
  const config = await readServerConfig(values.config);
  // Synchronous: the last line before a crash is the one that is wanted.
  const log = pino(
    { level: config.logLevel, base: { role: 'server' }, redact: ['req.headers.authorization', 'operatorToken', 'password'] },
    destination({ dest: 2, sync: true }),
  );
  const server = await startServer(config, log, readVersion());
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      log.info({ signal }, 'server stops');
      server.stop().then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ err: error }, 'the server did not stop cleanly');
          process.exit(1);
        },
      );
    });
  }
} catch (error) {
  // A line of the log like the others: with its pid, by which the supervisor knows why this process could not start.
  const coded =
    error instanceof CodedError ? { code: error.code, action: error.action } : { stack: error instanceof Error ? error.stack : undefined };
  const line = { level: 60, time: Date.now(), role: 'server', pid: process.pid, ...coded, msg: messageOf(error) };
  process.stderr.write(`${JSON.stringify(line)}\n`);
  process.exit(1);
}

/** The bundle carries its version; in a checkout it is the package's. */
function readVersion(): string {
  if (process.env.FIRECREW_BUILD_VERSION !== undefined) return process.env.FIRECREW_BUILD_VERSION;
  const text: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return typeof text === 'object' && text !== null && 'version' in text && typeof text.version === 'string' ? text.version : '0.0.0';
}
