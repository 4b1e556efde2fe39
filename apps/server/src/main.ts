import { parseArgs } from 'node:util';
import { fatalLine, programVersion } from '@firecrew/base';
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
  const server = await startServer(config, log, programVersion(new URL('../package.json', import.meta.url)));
  process.on('SIGHUP', () => void server.reloadPolicy());
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
  process.stderr.write(`${fatalLine(error, { role: 'server', pid: process.pid, atMs: Date.now() })}\n`);
  process.exit(1);
}
