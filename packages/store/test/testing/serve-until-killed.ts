import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { startTestDatabase } from '../../src/testing/test-database.ts';

// A test process that says where its server is and never ends by itself.
const { connection } = await startTestDatabase();
const home = dirname(dirname(connection.host));
const pid = Number(readFileSync(join(home, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
process.stdout.write(`${JSON.stringify({ pid, home })}\n`);
