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
    await writeFile(file, example.replace("'@firecrew/egress-policy'", JSON.stringify(new URL('../src/index.ts', import.meta.url).href)));
    await import(pathToFileURL(file).href);
    expect(log.mock.calls.map(([first]) => first)).toEqual([
      { verdict: 'allowed', reason: 'listed', host: 'api.example.com', port: 443, protocol: 'tls', rule: 'api.example.com' },
      'not_listed',
      'metadata_address',
      'operator_rule',
      'own_address',
    ]);
  } finally {
    log.mockRestore();
    await rm(folder, { recursive: true });
  }
});
