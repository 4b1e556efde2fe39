import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';

it('runs the example of the README', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const [, example = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-test-'));
  const logged = vi.spyOn(console, 'log').mockReturnValue(undefined);
  try {
    const file = join(folder, 'example.mjs');
    await writeFile(file, example.replace("'@firecrew/delivery'", JSON.stringify(new URL('../src/index.ts', import.meta.url).href)));
    await import(/* @vite-ignore */ pathToFileURL(file).href);
    expect(logged.mock.calls).toEqual([
      ['create', 'firecrew/fix-the-login-page-89abcdef'],
      ['firecrew/fix-the-login-page-89abcdef-aaaaaaaa'],
    ]);
  } finally {
    logged.mockRestore();
    await rm(folder, { recursive: true });
  }
});
