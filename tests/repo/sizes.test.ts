// What the size check refuses, and what lets a long file or function stand.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { append, BASE, findingsOf } from './plant.ts';
import { type SmallWorkspace, smallWorkspace } from './small-workspace.ts';

let workspace: SmallWorkspace;
beforeEach(() => {
  workspace = smallWorkspace();
});
afterEach(() => workspace.remove());

const run = (name: string) => findingsOf(workspace, name);

/** [what is planted, how, words of the finding] */
const PLANTED: readonly (readonly [string, (one: SmallWorkspace) => void, RegExp])[] = [
  ['a long file', append(BASE, '// line\n'.repeat(300)), /30\d lines; the limit is 300/],
  ['a long function', append(BASE, `export function a(): void {\n${'  GREETING;\n'.repeat(79)}}`), /a function of 81 lines/],
  [
    'a long function with an empty reason',
    append(BASE, `// size:\nexport function a(): void {\n${'  GREETING;\n'.repeat(79)}}`),
    /a function of 81 lines/,
  ],
];

describe('sizes', () => {
  it.each(PLANTED)('refuse %s', async (_what, plant, words) => {
    plant(workspace);
    expect(await run('sizes')).toMatch(words);
  });

  it('allow a long file that says why at its top', async () => {
    workspace.edit(BASE, (text) => `// size: one table, and half a table says nothing\n${text}${'// line\n'.repeat(300)}`);
    expect(await run('sizes')).toBe('');
  });

  it('allow a long function that says why right above it', async () => {
    append(
      BASE,
      `// size: one table, and half a table says nothing\nexport function a(): void {\n${'  GREETING;\n'.repeat(79)}}`,
    )(workspace);
    expect(await run('sizes')).toBe('');
  });

  it('are at the limit with exactly so many lines', async () => {
    append(BASE, `export function a(): void {\n${'  GREETING;\n'.repeat(78)}}`)(workspace);
    expect(await run('sizes')).toBe('');
  });
});
