// Writes the published JSON Schema of the last line of `firecrew run --json`; a test says when it is out of date.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runEventJsonSchema } from '../src/run/run-event.ts';

writeFileSync(join(import.meta.dirname, '../schemas/run-event.schema.json'), runEventJsonSchema());
