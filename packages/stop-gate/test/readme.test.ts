import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';
import { GATE_REASONS, STOP_GATE_ERROR_CODES } from '../src/index.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

it('runs the example of the README', async () => {
  const [, example = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-test-'));
  const logged = vi.spyOn(console, 'log').mockReturnValue(undefined);
  try {
    const file = join(folder, 'example.mjs');
    await writeFile(file, example.replace("'@firecrew/stop-gate'", JSON.stringify(new URL('../src/index.ts', import.meta.url).href)));
    await import(/* @vite-ignore */ pathToFileURL(file).href);
    expect(logged.mock.calls).toEqual([['next_round'], [[{ path: 'test/add.test.js', kind: 'test_file' }]]]);
  } finally {
    logged.mockRestore();
    await rm(folder, { recursive: true });
  }
});

it('tells every reason and every code in the README', () => {
  for (const name of [...GATE_REASONS, ...STOP_GATE_ERROR_CODES]) expect(readme).toContain(`\`${name}\``);
});
