import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { LINK_END_CODES, REFUSAL_REASONS } from '../src/index.ts';

const format = await readFile(new URL('../../../docs/link-format.md', import.meta.url), 'utf8');

it.each([...LINK_END_CODES, ...REFUSAL_REASONS])('has %s in the written format', (code) => {
  expect(format).toContain(`\`${code}\``);
});
