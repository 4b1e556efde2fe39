import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { GATE_REASONS, STOP_GATE_ERROR_CODES } from '../src/index.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

it('tells every reason and every code in the README', () => {
  for (const name of [...GATE_REASONS, ...STOP_GATE_ERROR_CODES]) expect(readme).toContain(`\`${name}\``);
});
