import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { runEventJsonSchema } from '../src/run/run-event.ts';

it('publishes the schema of the last line as it is now', () => {
  const published: unknown = JSON.parse(readFileSync(new URL('../schemas/run-event.schema.json', import.meta.url), 'utf8'));
  expect(published, 'run: node packages/cli/scripts/write-schema.ts').toEqual(JSON.parse(runEventJsonSchema()));
});
