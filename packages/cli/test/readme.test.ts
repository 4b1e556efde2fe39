import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';

it('runs the example of the README', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, example = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'fc-cli-readme-'));
  const logged = vi.spyOn(console, 'log').mockReturnValue(undefined);
  try {
    const source = new URL('../src/index.ts', import.meta.url).href;
    writeFileSync(join(folder, 'example.mjs'), example.replace("'@firecrew/cli'", JSON.stringify(source)));
    await import(/* @vite-ignore */ pathToFileURL(join(folder, 'example.mjs')).href);
    expect(logged.mock.calls).toEqual([['logs', ['4k7q'], true]]);
  } finally {
    logged.mockRestore();
    rmSync(folder, { recursive: true, force: true });
  }
});
