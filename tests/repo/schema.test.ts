// The migrations of the store say the same as its schema, and a schema that says more is refused.
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { checkSchema } from '../../tools/lint/check-schema.ts';
import { ROOT } from './small-workspace.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'firecrew-store-'));
  const store = join(root, 'packages', 'store');
  mkdirSync(store, { recursive: true });
  for (const name of ['src', 'migrations', 'package.json'])
    cpSync(join(ROOT, 'packages', 'store', name), join(store, name), { recursive: true });
  symlinkSync(join(ROOT, 'packages', 'store', 'node_modules'), join(store, 'node_modules'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('the migrations say the same as the schema', async () => {
  expect(await checkSchema(root)).toEqual([]);
});

it('a table without a migration is refused', async () => {
  const table =
    "import { integer as oddInteger, pgTable as oddTable } from 'drizzle-orm/pg-core';\nexport const odd = oddTable('odd', { one: oddInteger() });\n";
  appendFileSync(join(root, 'packages', 'store', 'src', 'schema.ts'), table);
  expect((await checkSchema(root)).join()).toMatch(/CREATE TABLE "odd"/);
});

it('a schema that does not load is refused', async () => {
  appendFileSync(join(root, 'packages', 'store', 'src', 'schema.ts'), 'export const = 1;\n');
  expect((await checkSchema(root)).join()).toMatch(/failed/);
});
