import { readFile } from 'node:fs/promises';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { dialLink, LINK_END_CODES, LinkListener, REFUSAL_REASONS } from '../src/index.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
const format = await readFile(new URL('../../../docs/link-format.md', import.meta.url), 'utf8');

it('runs the example of the README as it is', async () => {
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1]?.replaceAll(/^import .*$/gm, '');
  if (code === undefined) throw new Error('README has no example');
  const lines: unknown[][] = [];
  const log = { log: (...line: unknown[]) => lines.push(line), error: (...line: unknown[]) => lines.push(line) };
  const names = ['duplexPair', 'text', 'dialLink', 'LinkListener', 'console'];
  const run: unknown = new Function(...names, `return (async () => {${code}})();`);
  if (typeof run !== 'function') throw new Error('not a function');
  await run(duplexPair, text, dialLink, LinkListener, log);
  expect(lines).toEqual([[{ ok: true, asked: { kind: 'echo' } }, 'hello']]);
});

it.each([...LINK_END_CODES, ...REFUSAL_REASONS])('has %s in the written format', (code) => {
  expect(format).toContain(`\`${code}\``);
});
