import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';
import { ROSTER_REASONS, TOPOLOGY_REASONS, topologyKinds } from '../src/index.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

it('runs the example of the README', async () => {
  const [, example = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-test-'));
  const logged = vi.spyOn(console, 'log').mockReturnValue(undefined);
  try {
    const file = join(folder, 'example.mjs');
    await writeFile(file, example.replace("'@firecrew/topology'", JSON.stringify(new URL('../src/index.ts', import.meta.url).href)));
    await import(/* @vite-ignore */ pathToFileURL(file).href);
    expect(logged.mock.calls).toEqual([[['coder']], [['reviewer']]]);
  } finally {
    logged.mockRestore();
    await rm(folder, { recursive: true });
  }
});

it('tells every reason and every kind in the README', () => {
  for (const name of [...TOPOLOGY_REASONS, ...ROSTER_REASONS]) expect(readme).toContain(`\`${name}\``);
  for (const entry of topologyKinds()) {
    const members = entry.minMembers === entry.maxMembers ? `${entry.minMembers}` : `${entry.minMembers} to ${entry.maxMembers}`;
    const span = entry.minRounds === entry.maxRounds ? `${entry.minRounds}` : `${entry.minRounds} to ${entry.maxRounds}`;
    const rounds = entry.defaultRounds === entry.minRounds ? span : `${span}, default ${entry.defaultRounds}`;
    expect(readme).toContain(`| \`${entry.kind}\` | ${members} | ${rounds}`);
  }
});
