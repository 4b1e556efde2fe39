import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { buildProgram } from '../src/build-program.ts';

/** The words of a line for a shell, with double quotes as the only quotes. */
const wordsOf = (line: string): string[] => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

it('shows calls in its README that the command understands', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, example = ''] = /```sh\n([\s\S]*?)```/.exec(readme) ?? [];
  const called: string[] = [];
  const program = buildProgram('0.0.0', ({ command }) => called.push(command));
  const lines = example.split('\n').filter((line) => line.startsWith('firecrew '));
  for (const line of lines) program.parse(wordsOf(line).slice(1), { from: 'user' });
  expect(called).toEqual(['doctor', 'run', 'logs', 'fetch']);
});
