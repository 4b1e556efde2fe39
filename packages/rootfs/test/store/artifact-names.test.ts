import { mkdir, stat, writeFile } from 'node:fs/promises';
import { codeOf } from '@firecrew/base';
import { expect, it } from 'vitest';
import { type ArtifactDigest, ArtifactNames } from '../../src/index.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
const id = (digit: string): ArtifactDigest => `sha256:${digit.repeat(64)}`;

it('a name leads to one artifact, and is given anew in one step', async () => {
  const names = new ArtifactNames(at());
  expect([...(await names.list())]).toEqual([]);
  await names.set('claude', id('1'));
  await names.set('base', id('2'));
  await names.set('claude', id('3'));
  expect(await names.get('claude')).toBe(id('3'));
  expect([...(await names.list())]).toEqual([
    ['base', id('2')],
    ['claude', id('3')],
  ]);
  await names.remove('claude');
  expect(await names.get('claude')).toBeUndefined();
});

it.each(['', 'A', '1a', 'a/b', '..', 'a'.repeat(64), 'cafe', 'a b', '.hidden'])('%j is no name', async (name) => {
  expect(await new ArtifactNames(at()).set(name, id('1')).catch(codeOf)).toBe('image_name_wrong');
  expect(await new ArtifactNames(at()).get(name)).toBeUndefined();
});

it('a name whose file is damaged is no missing name', async () => {
  await mkdir(at('names'));
  await writeFile(at('names', 'x'), 'nothing like an id');
  expect(await new ArtifactNames(at()).get('x').catch(codeOf)).toBe('image_store_failed');
});

it('a name is read by other accounts, whatever the mask of the process that gave it', async () => {
  const mask = process.umask(0o077);
  try {
    await new ArtifactNames(at()).set('kernel', id('1'));
  } finally {
    process.umask(mask);
  }
  const modes = [await stat(at('names')), await stat(at('names', 'kernel'))].map(({ mode }) => mode & 0o777);
  expect(modes).toEqual([0o755, 0o644]);
});
