// A program that stands for Firecracker, or for its jailer: `simulator.mjs firecracker|jailer OPTIONS.json ARGUMENTS...`.
import { runFirecracker } from './firecracker.ts';
import { runJailer } from './jailer.ts';
import { readOptions } from './options.ts';

const [role, file = '', ...args] = process.argv.slice(2);
const options = readOptions(file);
if (role === 'jailer') await runJailer(options, file, args);
else await runFirecracker(options, args);
