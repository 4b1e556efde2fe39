import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_NAMED_DIFFERENCES, storeTree, takeTreeOut } from '../../src/index.ts';
import { buildTree, plans } from './build-tree.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

async function archive(): Promise<Uint8Array> {
  mkdirSync(at('tree/src'), { recursive: true });
  writeFileSync(at('tree/src/a.js'), 'x'.repeat(200_000));
  writeFileSync(at('tree/run.sh'), 'echo\n', { mode: 0o755 });
  symlinkSync('src/a.js', at('tree/link'));
  const { bytes } = await packBytes(at('tree'));
  mkdirSync(at('dest'));
  await storeTree([bytes], at('dest'));
  return bytes;
}

describe('takeTreeOut', () => {
  it('removes what is as it was put, and nothing else', async () => {
    const bytes = await archive();
    mkdirSync(at('dest/node_modules'));
    writeFileSync(at('dest/src/made'), 'product');
    expect(await takeTreeOut([bytes], at('dest'))).toEqual({ removed: 3, absent: 0, differing: 0, named: [] });
    expect(readdirSync(at('dest'), { recursive: true }).sort()).toEqual(['node_modules', 'src', 'src/made']);
    expect(await takeTreeOut([bytes], at('dest'))).toEqual({ removed: 0, absent: 3, differing: 0, named: [] });
  });

  it.each<[string, string, () => void]>([
    ['another byte at the end', 'src/a.js', () => writeFileSync(at('dest/src/a.js'), `${'x'.repeat(199_999)}y`)],
    ['another byte at the start', 'src/a.js', () => writeFileSync(at('dest/src/a.js'), `y${'x'.repeat(199_999)}`)],
    ['more content', 'src/a.js', () => writeFileSync(at('dest/src/a.js'), 'x', { flag: 'a' })],
    ['another mode', 'run.sh', () => chmodSync(at('dest/run.sh'), 0o644)],
    ['another target', 'link', () => replace('dest/link', 'elsewhere')],
    ['a link in the place of a file', 'run.sh', () => replace('dest/run.sh', at('tree/run.sh'))],
  ])('leaves and names what has %s', async (_what, path, change) => {
    const bytes = await archive();
    change();
    expect(await takeTreeOut([bytes], at('dest'))).toEqual({ removed: 2, absent: 0, differing: 1, named: [path] });
    expect(lstatSync(at(`dest/${path}`))).toBeDefined();
  });

  it('goes through no link: what lies behind one is neither compared nor removed', async () => {
    const bytes = await archive();
    mkdirSync(at('outside'));
    writeFileSync(at('outside/a.js'), 'x'.repeat(200_000));
    replace('dest/src', at('outside'));
    expect(await takeTreeOut([bytes], at('dest'))).toMatchObject({ removed: 2, absent: 1, differing: 0 });
    expect(readFileSync(at('outside/a.js'))).toHaveLength(200_000);
    await expect(takeTreeOut([bytes], at('dest/src'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });

  it('counts all that differ and names some', async () => {
    mkdirSync(at('tree'));
    mkdirSync(at('dest'));
    const count = MAX_NAMED_DIFFERENCES + 5;
    for (let index = 0; index < count; index += 1) {
      writeFileSync(at(`tree/${index}`), 'tree');
      writeFileSync(at(`dest/${index}`), 'other');
    }
    const out = await takeTreeOut([(await packBytes(at('tree'))).bytes], at('dest'));
    expect([out.differing, out.named.length]).toEqual([count, MAX_NAMED_DIFFERENCES]);
  });

  it('refuses a cut archive', async () => {
    const bytes = await archive();
    await expect(takeTreeOut([bytes.subarray(0, 2000)], at('dest'))).rejects.toMatchObject({ code: 'archive_refused' });
  });

  it('takes out of a folder all that a put has put there, whatever its names are', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(plans, async (items) => {
        run += 1;
        buildTree(at(`tree-${run}`), items);
        const { bytes } = await packBytes(at(`tree-${run}`));
        mkdirSync(at(`dest-${run}`));
        const { entries } = await storeTree([bytes], at(`dest-${run}`));
        const out = await takeTreeOut([bytes], at(`dest-${run}`));
        expect([out.absent, out.differing, out.removed <= entries]).toEqual([0, 0, true]);
        // A second time none of it is there.
        expect(await takeTreeOut([bytes], at(`dest-${run}`))).toEqual({ removed: 0, absent: out.removed, differing: 0, named: [] });
      }),
      { numRuns: 40 },
    );
  });
});

function replace(path: string, target: string): void {
  // The folder or file goes aside; a link takes its name.
  const aside = `${at(path)}-aside`;
  renameSync(at(path), aside);
  symlinkSync(target, at(path));
}
