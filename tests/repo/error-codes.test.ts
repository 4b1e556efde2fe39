// How error codes are found in sources, and what the document keeps when it is refreshed.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkErrorDocument, renderErrorDocument } from '../../tools/lint/error-document.ts';
import { findErrorCodes } from '../../tools/lint/find-error-codes.ts';
import { append, BASE, DECISION } from './plant.ts';
import { type SmallWorkspace, smallWorkspace } from './small-workspace.ts';

let workspace: SmallWorkspace;
beforeEach(() => {
  workspace = smallWorkspace();
});
afterEach(() => workspace.remove());

const OWN_CLASS = `
export const REASONS = ['listed', 'also_listed'] as const;
export type TopologyCode = (typeof REASONS)[number] | 'named';
export class TopologyError extends Error {
  readonly code: TopologyCode;
  constructor(code: TopologyCode, message: string) {
    super(message);
    this.code = code;
  }
}`;

/** [what stands in the sources, the codes found] */
const FOUND: readonly (readonly [string, string, readonly string[]])[] = [
  ['a literal', "export const a = (): Error => new CodedError('one', 'x');", ['one']],
  ['a choice', "export const a = (x: boolean): Error => new CodedError(x ? 'one' : 'two', 'x');", ['one', 'two']],
  [
    'a name for a choice',
    "export const a = (x: boolean): Error => {\n  const code = x ? 'one' : 'two';\n  return new CodedError(code, 'x');\n};",
    ['one', 'two'],
  ],
  [
    'a parameter of a closed type',
    "type C = 'one' | 'two';\nexport const a = (code: C): Error => new CodedError(code, 'x');",
    ['one', 'two'],
  ],
  [
    'a class with a code of its own',
    "export class Odd extends CodedError {\n  constructor(what: string) {\n    super('odd', what);\n  }\n}\nexport const a = (): Error => new Odd('wait');",
    ['odd'],
  ],
  ['a class with a fixed code', "export class Odd extends Error {\n  readonly code = 'odd';\n}", ['odd']],
  [
    'an object',
    "export class ApiError extends Error {\n  readonly code: string;\n  constructor(all: { code: string; message: string }) {\n    super(all.message);\n    this.code = all.code;\n  }\n}\nexport const a = (): Error => new ApiError({ code: 'one', message: 'x' });",
    ['one'],
  ],
  ['a closed list of codes', OWN_CLASS, ['also_listed', 'listed', 'named']],
  ['an error without a code', "export class Odd extends Error {}\nexport const a = (): Error => new Odd('one');", []],
];

describe('codes', () => {
  it.each(FOUND)('are found in %s', (_what, text, codes) => {
    append(BASE, text)(workspace);
    const found = findErrorCodes(workspace.root);
    expect(found.findings).toEqual([]);
    expect(found.codes.map(({ code }) => code)).toEqual(codes);
  });

  it('may come from elsewhere where a comment says why', () => {
    append(BASE, 'export const a = (x: string): Error =>\n  // any code: it comes from the peer\n  new CodedError(x);')(workspace);
    expect(findErrorCodes(workspace.root)).toEqual({ codes: [], findings: [] });
  });

  it('are snake_case', () => {
    append(BASE, "export const a = (): Error => new CodedError('Odd-Code');")(workspace);
    expect(findErrorCodes(workspace.root).findings.join()).toMatch(/the code Odd-Code is not snake_case/);
  });
});

describe('the document', () => {
  const throwing = `export const a = (id: string): Error => new CodedError('one', \`the a | b of \${id}\`, { action: 'Send it again.' });`;

  it('begins with what the sources say, keeps what was written by hand, and drops what nothing throws', () => {
    append(BASE, throwing)(workspace);
    append(DECISION, OWN_CLASS)(workspace);
    workspace.write('docs/errors.md', renderErrorDocument(workspace.root));
    expect(renderErrorDocument(workspace.root)).toContain('| `one` | the a \\| b of … | Send it again. |');
    expect(checkErrorDocument(workspace.root)).toEqual(
      ['also_listed', 'listed', 'named'].map((code) => `docs/errors.md does not say what to do about ${code} of @firecrew/topology`),
    );
    workspace.edit('docs/errors.md', (text) =>
      text.replaceAll(' |  |  |', ' |  | By hand \\| once. |').replace('Send it again.', 'Wait, then send it again.'),
    );
    workspace.edit(DECISION, (text) => text.replace("'also_listed'", "'listed_too'"));
    workspace.write('docs/errors.md', renderErrorDocument(workspace.root));
    const text = renderErrorDocument(workspace.root);
    expect(text).toContain('| `one` | the a \\| b of … | Wait, then send it again. |');
    expect(text).toContain('| `named` |  | By hand \\| once. |');
    expect(text).not.toContain('also_listed');
    expect(checkErrorDocument(workspace.root)).toEqual(['docs/errors.md does not say what to do about listed_too of @firecrew/topology']);
  });
});
