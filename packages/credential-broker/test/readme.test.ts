import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';

it('the example of the README runs and prints what its comments say', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const example = /```ts\n(.*?)```/s.exec(readme)?.[1] ?? '';
  const folder = await mkdtemp(join(tmpdir(), 'fc-cb-readme-'));
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  try {
    const file = join(folder, 'example.mts');
    const source = example
      .replace("'@firecrew/credential-broker'", JSON.stringify(new URL('../src/index.ts', import.meta.url).href))
      .replace("'@firecrew/model-route'", JSON.stringify(import.meta.resolve('@firecrew/model-route')));
    await writeFile(file, source);
    await import(pathToFileURL(file).href);
    const promised = [...example.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, text]) => text);
    expect(promised).toHaveLength(2);
    expect(log.mock.calls.map(([first]) => String(first))).toEqual(promised);
  } finally {
    log.mockRestore();
    await rm(folder, { recursive: true });
  }
});
