// A negative control for every check of `npm run lint`: it holds in a small workspace, and refuses what is planted there.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { allChecks } from '../../tools/lint/all-checks.ts';
import { writeApiReports } from '../../tools/lint/check-api.ts';
import { append, BASE, BIN, DECISION, findingsOf, manifest, replace, write } from './plant.ts';
import { type SmallWorkspace, smallWorkspace } from './small-workspace.ts';

let workspace: SmallWorkspace;
beforeEach(() => {
  workspace = smallWorkspace();
});
afterEach(() => workspace.remove());

const run = (name: string) => findingsOf(workspace, name);
const allowList = (layer: string, allow: readonly string[]) => (one: SmallWorkspace) =>
  one.edit('turbo.json', (text) => {
    const turbo = JSON.parse(text);
    turbo.boundaries.tags[layer] = { dependencies: { allow } };
    return JSON.stringify(turbo);
  });

/** Checks whose negative controls are files of their own. */
const ELSEWHERE = ['api', 'purity', 'schema', 'sizes'];

/** [check, what is planted, how, words of the finding] */
const PLANTED: readonly (readonly [string, string, (one: SmallWorkspace) => void, RegExp])[] = [
  ['format', 'a line with another indentation', append(BASE, 'export function f() {\n      return 1;\n}'), /format/],
  ['format', 'an explicit any', append(BASE, 'export const a = (value: any): string => String(value);'), /noExplicitAny/],
  ['format', 'a non-null assertion', append(BASE, 'export const a = (value?: string): string => value!;'), /noNonNullAssertion/],
  [
    'format',
    'imports out of order',
    write(`packages/base/src/b.ts`, "import { z } from './z.ts';\nimport { a } from './a.ts';\n\nexport const b = [a, z];\n"),
    /organizeImports/,
  ],
  ['types', 'a type error', append(BASE, 'export const a: number = GREETING;'), /TS2322/],
  ['types', 'a Node global in a decision', append(DECISION, 'export const a = (): unknown => process.env;'), /TS2591|TS2304|TS2580/],
  ['types', 'an unchecked index', append(BASE, 'export const a = (all: readonly string[]): string => all[0];'), /TS2322/],
  [
    'test-types',
    'a type error in a test',
    write('packages/base/test/a.test.ts', "import { GREETING } from '../src/index.ts';\n\nexport const a: number = GREETING;\n"),
    /TS2322/,
  ],
  ['promises', 'a floating promise', append(BASE, 'export function a(): void {\n  Promise.resolve(1);\n}'), /no-floating-promises/],
  [
    'promises',
    'a promise as a condition',
    append(BASE, 'export const a = (one: Promise<boolean>): number => (one ? 1 : 2);'),
    /no-misused-promises/,
  ],
  [
    'promises',
    'a switch that forgets a case',
    append(BASE, "export function a(kind: 'x' | 'y'): void {\n  switch (kind) {\n    case 'x':\n      break;\n  }\n}"),
    /switch-exhaustiveness-check/,
  ],
  ['boundaries', 'a package that is not declared', append(BASE, "export { earlier } from '@firecrew/topology';"), /not a dependency/],
  [
    'boundaries',
    'an import that leaves the package',
    append(BASE, "export { earlier } from '../../topology/src/index.ts';"),
    /leaves the package/,
  ],
  [
    'boundaries',
    'a dependency against the layers',
    manifest('packages/base/package.json', { dependencies: { '@firecrew/topology': 'workspace:^' } }),
    /topology/,
  ],
  ['layers', 'a wider allow-list', allowList('decision', ['base']), /the layer decision allows/],
  ['layers', 'a layer of its own', allowList('other', ['base']), /the layer other/],
  [
    'layers',
    'two tags',
    write('packages/topology/turbo.json', '{ "extends": ["//"], "tags": ["decision", "adapter"] }'),
    /tags \[decision, adapter\]/,
  ],
  ['layers', 'no tag', write('packages/topology/turbo.json', '{ "extends": ["//"] }'), /tags \[\]/],
  ['layers', 'another tag', write('packages/topology/turbo.json', '{ "extends": ["//"], "tags": ["base"] }'), /tags \[base\]/],
  ['layers', 'a package without a layer', manifest('packages/base/package.json', { name: '@firecrew/odd' }), /has no layer/],
  [
    'layers',
    'a decision with the settings of other packages',
    replace('packages/topology/tsconfig.json', 'tsconfig.decision.json', 'tsconfig.base.json'),
    /does not extend/,
  ],
  [
    'layers',
    'a decision with types of its own',
    replace('packages/topology/tsconfig.json', '"rootDir"', '"types": ["node"], "rootDir"'),
    /its own types/,
  ],
  ['layers', 'Node types for decisions', replace('tsconfig.decision.json', '"types": []', '"types": ["node"]'), /`types` is not empty/],
  ['layers', 'one more global for decisions', append('tools/types/web-globals.d.ts', 'declare const process: unknown;'), /web-globals/],
  [
    'layers',
    'a decision that depends on a package of ours',
    manifest('packages/topology/package.json', { devDependencies: { '@firecrew/base': 'workspace:^' } }),
    /a decision depends on/,
  ],
  ['layers', 'types by reference', (one) => one.edit(DECISION, (text) => `/// <reference types="node" />\n${text}`), /by reference/],
  [
    'layers',
    'a published package that should be private',
    manifest('packages/base/package.json', { private: false }),
    /published packages/,
  ],
  ['layers', 'a dependency without a project reference', manifest('packages/sdk/package.json', { dependencies: {} }), /references differ/],
  [
    'layers',
    'a package that the root build forgets',
    write('tsconfig.json', '{ "files": [], "references": [{ "path": "packages/base" }] }'),
    /not all packages/,
  ],
  ['words', 'a note to oneself', append(BASE, `// ${'TO'}${'DO'}: later`), /a note to oneself/],
  ['words', "a path of a developer's machine", append(BASE, `// see /ho${'me'}/someone/notes`), /developer's machine/],
  ['words', 'a registry in the lock file', append('pnpm-lock.yaml', `tarball: https://npm.example.com/x.tgz`), /an address of a registry/],
  ['words', 'a private registry', append(BASE, `// https://npm.nex${'us'}.example.com/`), /a private registry/],
  [
    'errors',
    'a code that the document lacks',
    append(BASE, "export class CodedError extends Error {}\nexport const a = (): Error => new CodedError('one_more');"),
    /lacks one_more of @firecrew\/base/,
  ],
  [
    'errors',
    'a code that is computed',
    append(BASE, 'export class CodedError extends Error {}\nexport const a = (x: string): Error => new CodedError(x + x);'),
    /cannot be read/,
  ],
  [
    'errors',
    'a code that nothing throws',
    write('docs/errors.md', '## `@firecrew/base`\n\n| code | what happened | what to do |\n| --- | --- | --- |\n| `gone` | x | y |\n'),
    /lists @firecrew\/base gone, which nothing throws/,
  ],
  ['unused', 'an export that nobody uses', write('packages/base/src/a.ts', 'export const A = 1;\n'), /a\.ts/],
  ['unused', 'a dependency that nobody uses', manifest('packages/base/package.json', { dependencies: { zod: '4.6.7' } }), /zod/],
  [
    'packages',
    'an entry point that is not packed',
    manifest('packages/topology/package.json', { files: ['README.md'] }),
    /@firecrew\/topology/,
  ],
];

describe('every check', () => {
  it('holds in a workspace with nothing wrong', async () => {
    workspace.format();
    for (const name of Object.keys(allChecks(workspace.root, BIN))) {
      // Of what `types` has built by then.
      if (name === 'api') await writeApiReports(workspace.root);
      expect(await run(name), name).toBe('');
    }
  });

  it('has a negative control', () => {
    const covered = new Set([...PLANTED.map(([name]) => name), ...ELSEWHERE]);
    expect([...covered].sort()).toEqual(Object.keys(allChecks(workspace.root, BIN)).sort());
  });

  it.each(PLANTED)('%s refuses %s', async (name, _what, plant, words) => {
    if (name === 'format') workspace.format();
    if (name === 'packages') await run('types');
    plant(workspace);
    expect(await run(name)).toMatch(words);
  });
});
