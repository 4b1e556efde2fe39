// Writes the published JSON Schemas, of the last line of `firecrew run --json` and of a policy file; tests say when they are out of date.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { policyJsonSchema } from '@firecrew/policy-file';
import { runEventJsonSchema } from '../src/run/run-event.ts';

writeFileSync(join(import.meta.dirname, '../schemas/run-event.schema.json'), runEventJsonSchema());
writeFileSync(join(import.meta.dirname, '../schemas/policy.schema.json'), policyJsonSchema());
