import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';
import { temporaryFolder } from './support/temporary-folder.ts';

const at = temporaryFolder();
const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

it('runs the example of the README', async () => {
  const [, example = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const source = new URL('../src/index.ts', import.meta.url).href;
  const logged = vi.spyOn(console, 'log').mockReturnValue(undefined);
  await writeFile(at('example.ts'), example.replace("'@firecrew/rootfs'", JSON.stringify(source)));
  await import(/* @vite-ignore */ pathToFileURL(at('example.ts')).href);
  expect(logged.mock.calls).toEqual([[true]]);
  logged.mockRestore();
});
