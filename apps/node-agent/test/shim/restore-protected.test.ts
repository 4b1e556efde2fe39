import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ManifestEntry, readableName, tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import { canonicaliseArchive } from '@firecrew/workspace';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptContext, StagedTree } from '../../src/shim/attempt-context.ts';
import { changedPaths } from '../../src/shim/collect-tree.ts';
import { restoreProtected } from '../../src/shim/restore-protected.ts';

type Files = readonly (readonly [name: string, content: string])[];

describe('paths under gate.protect', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-restore-'));
    for (const name of ['inputs', 'staged']) await mkdir(join(folder, name));
  });
  afterEach(async () => await rm(folder, { recursive: true, force: true }));

  /** A tree of files whose names are given byte by byte, in latin1. */
  async function snapshot(files: Files, file: string) {
    const parts = files.flatMap(([name, content]) => [
      writeTarHeader({ path: Buffer.from(name, 'latin1'), kind: 'file', size: content.length }),
      Buffer.from(content),
      tarPadding(content.length),
    ]);
    return await canonicaliseArchive([Buffer.concat([...parts, tarEnd()])], file);
  }

  async function restore(protect: readonly string[], before: Files, after: Files) {
    const base = await snapshot(before, join(folder, 'inputs', 'base'));
    const file = join(folder, 'staged', 'round.tar.zst');
    const collected = await snapshot(after, file);
    // casts: what of a tree and of an attempt the restoring reads
    const tree = { file, captured: { round: 1 }, entries: collected.entries } as unknown as StagedTree;
    const context = {
      spec: { gate: { protect }, base: { blob: { digest: 'base' } } },
      paths: { inputs: join(folder, 'inputs'), staged: join(folder, 'staged') },
      state: { base: base.entries },
    } as unknown as AttemptContext;
    const restored = await restoreProtected(context, tree, changedPaths(context, tree.entries), 1);
    const names = (entries: readonly ManifestEntry[]) => entries.map(({ path }) => readableName(path));
    return { names: names(restored.tree.entries), paths: restored.paths };
  }

  it('come back as they were, whatever bytes their names hold', async () => {
    const before = [
      ['a.js', 'a'],
      ['test/\xff.js', 'old'],
      ['test/plain.js', 'old'],
    ] as const;
    const after = [
      ['a.js', 'b'],
      ['test/\xc3\xbc.js', 'new'],
      ['test/\xfe.test.js', 'new'],
      ['test/\xff.js', 'other'],
    ] as const;
    const { names, paths } = await restore(['test/**'], before, after);
    expect(names).toEqual(['a.js', 'test/plain.js', 'test/\\xff.js']);
    // For people and records: text alone.
    expect([...paths].sort()).toEqual(['test/plain.js', 'test/ü.js', 'test/\ufffd.js', 'test/\ufffd.test.js']);
  });

  it('are met by a rule in their own letters', async () => {
    const { names } = await restore(
      ['prüfung/*'],
      [['a', '']],
      [
        ['a', ''],
        ['pr\xc3\xbcfung/neu', 'x'],
        ['pr\xfcfung/neu', 'x'],
      ],
    );
    expect(names).toEqual(['a', 'pr\\xfcfung/neu']);
  });
});
