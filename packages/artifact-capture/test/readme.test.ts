import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CAPTURE_ERROR_CODES, SKIP_REASONS } from '../src/index.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

it('lists every code and reason', () => {
  for (const code of [...CAPTURE_ERROR_CODES, ...SKIP_REASONS]) expect(readme).toContain(`\`${code}\``);
});
