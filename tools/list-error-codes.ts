// Prints `docs/errors.md` as the sources want it; with --write, refreshes it in place.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_DOCUMENT, renderErrorDocument } from './lint/error-document.ts';

const root = join(import.meta.dirname, '..');
const document = renderErrorDocument(root);
if (process.argv.includes('--write')) writeFileSync(join(root, ERROR_DOCUMENT), document);
else process.stdout.write(document);
