import type { ManifestEntry } from '@firecrew/artifact-capture';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changesBetween } from '../../src/git/import-changes.ts';
import type { TreeEntry } from '../../src/git/list-tree.ts';
import { expectedListing, modeOf, planTreeChange } from '../../src/git/plan-tree-change.ts';

const KINDS = ['file', 'executable', 'link', 'directory'] as const;
const entry = fc.record({
  path: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }),
  kind: fc.constantFrom(...KINDS),
  content: fc.nat(3),
});

/** A tree in canonical form: no path twice, none below another that is no folder. */
const tree = fc.array(entry, { maxLength: 12 }).map((drafts): ManifestEntry[] => {
  const kept = new Map<string, ManifestEntry>();
  for (const { path, kind, content } of drafts) {
    const name = path.join('/');
    if ([...kept.keys()].some((other) => other === name || other.startsWith(`${name}/`) || name.startsWith(`${other}/`))) continue;
    const sha256 = kind === 'directory' ? '' : `${content}`.repeat(64);
    kept.set(name, { path: Buffer.from(name), kind, size: kind === 'directory' ? 0 : content, sha256 });
  }
  return [...kept.values()];
});

const shaOf = (file: ManifestEntry): string => file.sha256.slice(0, 40);
const listingOf = (entries: readonly ManifestEntry[]): Map<string, TreeEntry> =>
  new Map(
    entries
      .filter((file) => file.kind !== 'directory')
      .map((file) => [Buffer.from(file.path).toString(), { path: Buffer.from(file.path), mode: modeOf(file), sha: shaOf(file) }]),
  );
const flat = (listing: ReadonlyMap<string, TreeEntry>): [string, string][] =>
  [...listing].map(([key, { mode, sha }]): [string, string] => [key, `${mode} ${sha}`]);

describe('the change of a tree', () => {
  it('turns any tree into any other', () => {
    fc.assert(
      fc.property(tree, tree, (before, after) => {
        const { set, removed } = changesBetween(before, after);
        const base = listingOf(before);
        const plan = planTreeChange(base, set, removed);
        expect(plan.notImported).toEqual([]);
        expect([...expectedListing(base, plan, shaOf)].sort()).toEqual(flat(listingOf(after)).sort());
      }),
    );
  });

  it('leaves every path alone that neither manifest names, unless a new one needs its place', () => {
    fc.assert(
      fc.property(tree, tree, tree, (hidden, before, after) => {
        const base = new Map([...listingOf(before), ...[...listingOf(hidden)].map(([key, value]) => [`hidden/${key}`, value] as const)]);
        const { set, removed } = changesBetween(before, after);
        const result = expectedListing(base, planTreeChange(base, set, removed), shaOf);
        for (const [key] of listingOf(hidden)) expect(result.has(`hidden/${key}`)).toBe(true);
      }),
    );
  });

  it('keeps submodules whatever the collected tree holds', () => {
    fc.assert(
      fc.property(tree, (after) => {
        const base = new Map<string, TreeEntry>([['a/b', { path: Buffer.from('a/b'), mode: '160000', sha: '1'.repeat(40) }]]);
        const plan = planTreeChange(base, after, [Buffer.from('a/b')]);
        expect(expectedListing(base, plan, shaOf).get('a/b')).toBe(`160000 ${'1'.repeat(40)}`);
        expect(plan.set.every((file) => !/^a(?:\/b(?:\/|$)|$)/.test(Buffer.from(file.path).toString()))).toBe(true);
      }),
    );
  });

  it('takes a hidden path out when a file takes the place of its folder', () => {
    const base = listingOf([{ path: Buffer.from('d/.env'), kind: 'file', size: 1, sha256: '1'.repeat(64) }]);
    const plan = planTreeChange(base, [{ path: Buffer.from('d'), kind: 'file', size: 1, sha256: '2'.repeat(64) }], []);
    expect(plan.remove.map(String)).toEqual(['d/.env']);
  });
});
