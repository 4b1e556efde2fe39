import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CAPTURE_ERROR_CODES, SKIP_REASONS, TarReader, tarEnd, tarPadding, writeTarHeader } from '../src/index.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

it('lists every code and reason', () => {
  for (const code of [...CAPTURE_ERROR_CODES, ...SKIP_REASONS]) expect(readme).toContain(`\`${code}\``);
});

it('has an example that does what it says', () => {
  const source = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  const lines: string[] = [];
  const body = source.replace(/^import .*\n/m, '');
  const run = new Function('TarReader', 'tarEnd', 'tarPadding', 'writeTarHeader', 'console', body);
  run(TarReader, tarEnd, tarPadding, writeTarHeader, { log: (line: string) => lines.push(line) });
  expect(source).toContain(`// ${lines.join(', ')}`);
});
