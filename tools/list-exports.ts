// Prints what the published packages export; with --write, refreshes the list that the tests pin.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listExports } from './lint/list-exports.ts';

const root = join(import.meta.dirname, '..');
const text = `${JSON.stringify(listExports(root), null, 2)}\n`;
if (process.argv.includes('--write')) writeFileSync(join(root, 'tests/repo/exports.snapshot.json'), text);
else process.stdout.write(text);
