import { lockDirectory } from '../../src/postgres/directory-lock.ts';

// Holds a lock, says so, and stays until it is killed.
const lock = await lockDirectory(process.argv[2] ?? '');
process.stdout.write(`${lock.name}\n`);
