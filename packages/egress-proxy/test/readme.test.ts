import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';

it('the example of the README runs and prints what its comments say', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const example = /```ts\n(.*?)```/s.exec(readme)?.[1] ?? '';
  const folder = await mkdtemp(join(tmpdir(), 'egress-readme-'));
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  try {
    const file = join(folder, 'example.mts');
    const source = example
      .replace("'@firecrew/egress-proxy'", JSON.stringify(new URL('../src/index.ts', import.meta.url).href))
      .replace("'@firecrew/egress-policy'", JSON.stringify(import.meta.resolve('@firecrew/egress-policy')));
    await writeFile(file, source);
    await import(pathToFileURL(file).href);
    const printed = log.mock.calls.map(([first]) => String(first));
    expect(printed).toHaveLength(2);
    expect(JSON.parse(printed[0] ?? '')).toMatchObject({ event: 'refused', reason: 'not_listed', host: 'elsewhere.example.net' });
    expect(printed[1]).toMatch(/^HTTP\/1\.1 403 Forbidden \(not_listed\)\r\n/);
  } finally {
    log.mockRestore();
    await rm(folder, { recursive: true });
  }
});
