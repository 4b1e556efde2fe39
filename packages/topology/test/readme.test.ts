import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ROSTER_REASONS, TOPOLOGY_REASONS, topologyKinds } from '../src/index.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

it('tells every reason and every kind in the README', () => {
  for (const name of [...TOPOLOGY_REASONS, ...ROSTER_REASONS]) expect(readme).toContain(`\`${name}\``);
  for (const entry of topologyKinds()) {
    const members = entry.minMembers === entry.maxMembers ? `${entry.minMembers}` : `${entry.minMembers} to ${entry.maxMembers}`;
    const span = entry.minRounds === entry.maxRounds ? `${entry.minRounds}` : `${entry.minRounds} to ${entry.maxRounds}`;
    const rounds = entry.defaultRounds === entry.minRounds ? span : `${span}, default ${entry.defaultRounds}`;
    expect(readme).toContain(`| \`${entry.kind}\` | ${members} | ${rounds}`);
  }
});
