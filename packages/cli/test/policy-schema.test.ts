import { readFileSync } from 'node:fs';
import { policyJsonSchema } from '@firecrew/policy-file';
import { expect, it } from 'vitest';

it('publishes the schema of a policy file as it is now', () => {
  const published: unknown = JSON.parse(readFileSync(new URL('../schemas/policy.schema.json', import.meta.url), 'utf8'));
  expect(published, 'run: node packages/cli/scripts/write-schema.ts').toEqual(JSON.parse(policyJsonSchema()));
});
