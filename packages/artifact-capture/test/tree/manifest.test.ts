import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  byteKey,
  CaptureError,
  compareEntries,
  compareManifests,
  decodeManifest,
  encodeManifest,
  MANIFEST_START,
  type ManifestEntry,
  manifestRecord,
  snapshotIdOf,
} from '../../src/index.ts';
import { sha256Hex, tree } from '../arbitraries.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const digest = sha256Hex(bytes(''));
const entry = (path: string, change: Partial<ManifestEntry> = {}): ManifestEntry => ({
  path: bytes(path),
  kind: 'file',
  size: 0,
  sha256: digest,
  ...change,
});
const hex = (entries: readonly ManifestEntry[]) => entries.map((item) => ({ ...item, path: Buffer.from(item.path).toString('hex') }));

describe('the canonical manifest', () => {
  it('is pinned for a tree with every kind of entry', () => {
    const entries = [entry('b/x', { kind: 'executable', size: 3 }), entry('b-c'), entry('a', { kind: 'link', size: 2 })];
    const empty = entry('e', { kind: 'directory', sha256: '' });
    expect(Buffer.from(encodeManifest([...entries, empty])).toString()).toBe(
      `firecrew-manifest-1\0link 2 ${digest} a\x000644 0 ${digest} b-c\x000755 3 ${digest} b/x\0tree 0 - e\0`,
    );
    expect(snapshotIdOf([], sha256Hex)).toBe('4ad5ab720da56284310951ec3c8f055863da124366cabe13e8ab03813c6f3584');
  });

  it('is the same for every order of the entries and reads back as they are', () => {
    fc.assert(
      fc.property(tree, (items) => {
        const entries = items.map((item) => item.entry);
        const encoded = encodeManifest(entries);
        expect(encodeManifest([...entries].reverse())).toEqual(encoded);
        const decoded = decodeManifest(encoded);
        expect(encodeManifest(decoded)).toEqual(encoded);
        expect(new Set(hex(decoded).map((item) => JSON.stringify(item)))).toEqual(
          new Set(hex(entries).map((item) => JSON.stringify(item))),
        );
      }),
    );
  });

  it('is its start and the records of its entries in order', () => {
    fc.assert(
      fc.property(tree, (items) => {
        const entries = items.map((item) => item.entry).sort(compareEntries);
        const text = entries.reduce((made, item) => made + manifestRecord(byteKey(item.path), item), MANIFEST_START);
        expect(byteKey(encodeManifest(entries))).toBe(text);
      }),
    );
  });

  it.each<[string, ManifestEntry[]]>([
    ['a path twice', [entry('a'), entry('a')]],
    ['a path that is file and folder', [entry('a'), entry('a', { kind: 'directory', sha256: '' })]],
    ['a path below a file, with another between', [entry('a'), entry('a-b'), entry('a/b')]],
    ['a path below a file, two levels down', [entry('a'), entry('a/b/c')]],
    ['a digest that is none', [entry('a', { sha256: 'x' })]],
    ['a folder with a size', [entry('a', { kind: 'directory', sha256: '', size: 1 })]],
    ['a size that is no whole number', [entry('a', { size: 1.5 })]],
    ['a negative size', [entry('a', { size: -1 })]],
    ['a NUL in a path', [entry('a\0b')]],
    ['an empty component', [entry('a//b')]],
  ])('is not made of %s', (_name, entries) => {
    expect(() => encodeManifest(entries)).toThrow(CaptureError);
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no format', `0644 0 ${digest} a\0`],
    ['another format', `firecrew-manifest-2\x000644 0 ${digest} a\0`],
    ['a record that is cut', `firecrew-manifest-1\x000644 0 ${digest} a`],
    ['another mode', `firecrew-manifest-1\x000600 0 ${digest} a\0`],
    ['a size with a leading zero', `firecrew-manifest-1\x000644 00 ${digest} a\0`],
    ['a size past 2^53-1', `firecrew-manifest-1\x000644 9999999999999999 ${digest} a\0`],
    ['a digest in upper case', `firecrew-manifest-1\x000644 0 ${digest.toUpperCase()} a\0`],
    ['a file without a digest', 'firecrew-manifest-1\x000644 0 - a\0'],
    ['a folder with a digest', `firecrew-manifest-1\0tree 0 ${digest} a\0`],
    ['records out of order', `firecrew-manifest-1\x000644 0 ${digest} b\x000644 0 ${digest} a\0`],
    ['a path twice', `firecrew-manifest-1\x000644 0 ${digest} a\x000644 0 ${digest} a\0`],
    ['a path that is file and folder', `firecrew-manifest-1\x000644 0 ${digest} a\0tree 0 - a\0`],
    ['a path below a file', `firecrew-manifest-1\x000644 0 ${digest} a\x000644 0 ${digest} a/b\0`],
    ['a path below an empty folder', `firecrew-manifest-1\0tree 0 - a\x000644 0 ${digest} a/b\0`],
    ['a dot component', `firecrew-manifest-1\x000644 0 ${digest} ./a\0`],
    ['a trailing slash', 'firecrew-manifest-1\0tree 0 - a/\0'],
    ['an empty record', 'firecrew-manifest-1\0\0'],
  ])('refuses %s', (_name, text) => {
    expect(() => decodeManifest(bytes(text))).toThrow(expect.objectContaining({ code: 'malformed_manifest' }));
  });

  it.each([
    ['parent_component', '../a'],
    ['absolute_path', '/a'],
  ])('refuses a path with %s', (code, path) => {
    expect(() => encodeManifest([entry(path)])).toThrow(CaptureError);
    expect(() => encodeManifest([entry(path)])).toThrow(expect.objectContaining({ code }));
  });
});

describe('compareManifests', () => {
  it('sorts each difference into one list', () => {
    const base = [entry('same'), entry('gone'), entry('text', { size: 1 }), entry('mode'), entry('type')];
    const next = [
      entry('same'),
      entry('new'),
      entry('text', { size: 2 }),
      entry('mode', { kind: 'executable' }),
      entry('type', { kind: 'link' }),
    ];
    const { added, deleted, changed, modeChanged, typeChanged, isEmpty } = compareManifests(base, next);
    const names = (list: readonly { path: Uint8Array }[]) => list.map(({ path }) => Buffer.from(path).toString());
    expect([added, deleted, changed, modeChanged, typeChanged].map(names)).toEqual([['new'], ['gone'], ['text'], ['mode'], ['type']]);
    expect(isEmpty).toBe(false);
  });

  it('keeps names apart that decode to the same text', () => {
    const bad = (byte: number) => entry('', { path: new Uint8Array([0x61, byte]) });
    expect(compareManifests([bad(0x80)], [bad(0x81)])).toMatchObject({ added: [{}], deleted: [{}], changed: [] });
  });

  it('is empty exactly for equal trees', () => {
    fc.assert(
      fc.property(tree, tree, (a, b) => {
        const [one, two] = [a.map(({ entry: item }) => item), b.map(({ entry: item }) => item)];
        expect(compareManifests(one, [...one].reverse()).isEmpty).toBe(true);
        expect(compareManifests(one, two).isEmpty).toBe(snapshotIdOf(one, sha256Hex) === snapshotIdOf(two, sha256Hex));
      }),
    );
  });
});
