import type { EntryKind, ManifestEntry } from '@firecrew/artifact-capture';
import { describe, expect, it } from 'vitest';
import { commitChange } from '../../src/shim/collect-tree.ts';
import { turnSpec } from './turn-spec.ts';

const entry = (path: string, kind: EntryKind = 'file'): ManifestEntry => ({ path: Buffer.from(path), kind, size: 0, sha256: '' });
const base = [entry('a.txt')];
const blob = turnSpec().base;

function change(commit: string | null, ...added: ManifestEntry[]): string {
  const ignore = [
    { dir: '', text: 'out/\n*.log\n' },
    { dir: 'kept', text: '!*.log\n' },
  ];
  const spec = turnSpec({ base: { ...blob, commit }, ignore: commit === null ? [] : ignore });
  return commitChange({ spec, state: { base } }, [...base, ...added]);
}

describe('what of a collected tree is a change', () => {
  it.each([
    [[], 'none', 'none'],
    [[entry('b.txt')], 'changed', 'changed'],
    [[entry('out/x')], 'ignored_only', 'changed'],
    [[entry('sub/x.log'), entry('caf\u00e9.log')], 'ignored_only', 'changed'],
    [[entry('kept/x.log')], 'changed', 'changed'],
    [[entry('out')], 'changed', 'changed'],
    [[entry('empty', 'directory')], 'none', 'changed'],
  ] as const)('of %j is %s on a commit and %s without a repository', (added, onCommit, without) => {
    expect([change('a'.repeat(40), ...added), change(null, ...added)]).toEqual([onCommit, without]);
  });
});
