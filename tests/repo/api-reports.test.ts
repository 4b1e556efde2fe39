// What the check of API reports refuses: a package that says something else than the report under review.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apiReports, checkApi, writeApiReports } from '../../tools/lint/check-api.ts';

let root: string;
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const declare = (text: string): void => write('packages/one/dist/index.d.ts', text);

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'firecrew-api-test-'));
  const manifest = {
    name: '@firecrew/one',
    version: '1.0.0',
    exports: { '.': { types: './dist/index.d.ts' }, './package.json': './package.json' },
  };
  write('packages/one/package.json', JSON.stringify(manifest));
  write('packages/two/package.json', JSON.stringify({ ...manifest, name: '@firecrew/two', private: true }));
  declare('export declare function add(a: number, b: number): number;\n');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('API reports', () => {
  it('are of published packages alone, and hold what those export', async () => {
    expect(checkApi(root)).toEqual([expect.stringMatching(/packages\/one\/api\/index\.api\.md is missing/)]);
    await writeApiReports(root);
    expect(checkApi(root)).toEqual([]);
    expect(apiReports(root)).toEqual([
      { path: 'packages/one/api/index.api.md', text: expect.stringContaining('add(a: number, b: number): number') },
    ]);
  });

  it.each([
    ['another type of a parameter', 'export declare function add(a: string, b: number): number;\n'],
    ['another name', 'export declare function sum(a: number, b: number): number;\n'],
    ['a name more', 'export declare function add(a: number, b: number): number;\nexport declare const ZERO = 0;\n'],
  ])('refuse %s', async (_what, text) => {
    await writeApiReports(root);
    declare(text);
    expect(checkApi(root)).toEqual([expect.stringMatching(/is not what the package exports, first at: .+/)]);
  });

  it('name a shape that a public one speaks of and nobody can name', () => {
    declare('interface Hidden {\n  readonly a: number;\n}\nexport declare function read(): Hidden;\nexport {};\n');
    expect(apiReports(root)).toEqual([expect.objectContaining({ text: expect.stringContaining('ae-forgotten-export') })]);
  });

  it('are never empty because nothing was built, or because what was built is wrong', () => {
    declare('export declare const a: Missing;\n');
    expect(() => apiReports(root)).toThrow(/Missing/);
    rmSync(join(root, 'packages/one/dist'), { recursive: true });
    expect(() => apiReports(root)).toThrow(/npm run build/);
  });
});
