import { describe, expect, it } from 'vitest';
import { type CommitChange, compareManifests, decideChange, type EntryKind, type ManifestEntry } from '../../src/index.ts';

/** A tree written as `path`, `path*` (executable), `path@` (link), `path/` (empty folder) or `path=other content`. */
function tree(...names: string[]): ManifestEntry[] {
  return names.map((name) => {
    const [path = '', content = ''] = name.split('=');
    const kinds: Record<string, EntryKind> = { '*': 'executable', '@': 'link', '/': 'directory' };
    const kind = kinds[path.at(-1) ?? ''] ?? 'file';
    return { path: new TextEncoder().encode(kind === 'file' ? path : path.slice(0, -1)), kind, size: content.length, sha256: content };
  });
}

const isIgnored = (path: Uint8Array) => new TextDecoder().decode(path).startsWith('dist');

describe('a change', () => {
  it.each<{ base: string[]; next: string[]; change: CommitChange }>([
    { base: ['a'], next: ['a'], change: 'none' },
    { base: ['a'], next: ['a', 'b'], change: 'changed' },
    { base: ['a'], next: ['a', 'dist/x'], change: 'ignored_only' },
    { base: ['a'], next: ['a', 'dist/x', 'dist/y@', 'z/'], change: 'ignored_only' },
    { base: ['a'], next: ['a', 'dist/x', 'b'], change: 'changed' },
    { base: ['a'], next: ['a', 'z/'], change: 'none' },
    { base: ['a', 'z/'], next: ['a'], change: 'none' },
    { base: ['a', 'z/'], next: ['a', 'z'], change: 'changed' },
    { base: ['a', 'dist/'], next: ['a', 'dist'], change: 'ignored_only' },
    { base: ['a', 'dist/x'], next: ['a', 'dist/x=new'], change: 'changed' },
    { base: ['a', 'dist/x'], next: ['a'], change: 'changed' },
    { base: ['a', 'dist/x'], next: ['a', 'dist/x*'], change: 'changed' },
    { base: ['a', 'dist/x'], next: ['a', 'dist/x@'], change: 'changed' },
    { base: ['a', 'dist'], next: ['a', 'dist/'], change: 'changed' },
  ])('from $base to $next is $change', ({ base, next, change }) => {
    expect(decideChange(compareManifests(tree(...base), tree(...next)), isIgnored)).toBe(change);
  });
});
