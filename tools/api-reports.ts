// Prints the API reports of the published packages; with --write, refreshes those under review.
import { join } from 'node:path';
import { apiReports, writeApiReports } from './lint/check-api.ts';

const root = join(import.meta.dirname, '..');
if (process.argv.includes('--write')) await writeApiReports(root);
else for (const { path, text } of apiReports(root)) process.stdout.write(`${path}\n\n${text}\n`);
