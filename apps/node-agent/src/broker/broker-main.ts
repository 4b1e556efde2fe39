import { fatalLine } from '@firecrew/base';
import { destination, pino } from 'pino';
import { serveBroker } from './serve-broker.ts';

/** How the process shows in lists of processes. */
const TITLE = 'firecrew-credential-broker';

const [socketPath] = process.argv.slice(2);
if (socketPath === undefined) {
  process.stderr.write('usage: credential-broker SOCKET, with the orders of a node agent on its input\n');
  process.exit(2);
}
process.title = TITLE;
// A signal for the whole group is the node agent's to follow; it ends the broker's input when it ends.
process.on('SIGINT', () => undefined);
try {
  const log = pino({ base: { role: 'credential-broker', pid: process.pid } }, destination({ dest: 2, sync: true }));
  await serveBroker(socketPath, process.stdin, process.stdout, log);
  process.exit(0);
} catch (error) {
  process.stderr.write(`${fatalLine(error, { role: 'credential-broker', pid: process.pid, atMs: Date.now() })}\n`);
  process.exit(1);
}
