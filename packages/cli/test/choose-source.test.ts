import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { chooseSource, type SourceOptions, type SourcePlace } from '../src/images/choose-source.ts';

const options = (from: string, more: Partial<SourceOptions> = {}): SourceOptions => ({
  ...{ from, reference: undefined, keepOwners: false, packages: [], mirror: undefined },
  ...more,
});
const place = (kind: SourcePlace['kind']): SourcePlace => ({ path: '/p', kind });

describe('what an image is built from', () => {
  /** [options, place, source] */
  const SOURCES: readonly (readonly [SourceOptions, SourcePlace, object])[] = [
    [options('d'), place('folder'), { kind: 'directory', path: '/p', owners: 'root' }],
    [options('d', { keepOwners: true }), place('folder'), { kind: 'directory', path: '/p', owners: 'kept' }],
    [options('l', { reference: 'x:1' }), place('layout'), { kind: 'oci-layout', path: '/p', reference: 'x:1' }],
    [options('f.tar'), place('file'), { kind: 'docker-archive', path: '/p', reference: undefined }],
    [
      options('debian:bookworm', { packages: ['git'], mirror: 'https://m/d' }),
      place('none'),
      { kind: 'suite', suite: 'debian:bookworm', packages: ['git'], mirror: 'https://m/d' },
    ],
    // A folder of that name is meant: it is there.
    [options('debian:bookworm'), place('folder'), { kind: 'directory', path: '/p', owners: 'root' }],
  ];
  it.each(SOURCES)('%j in a %j', (given, at, source) => {
    expect(chooseSource(given, at)).toEqual(source);
  });

  /** [what, options, place] */
  const REFUSED: readonly (readonly [string, SourceOptions, SourcePlace])[] = [
    ['nothing that is there', options('gone'), place('none')],
    ['a suite of an unknown system', options('arch:rolling'), place('none')],
    ['packages for a folder', options('d', { packages: ['git'] }), place('folder')],
    ['a mirror for an archive', options('f', { mirror: 'https://m' }), place('file')],
    ['a mirror that is no URL', options('debian:bookworm', { mirror: 'deb [trusted=yes] x' }), place('none')],
    ['a reference for a folder', options('d', { reference: 'x' }), place('folder')],
    ['owners of an archive', options('f', { keepOwners: true }), place('file')],
  ];
  it.each(REFUSED)('refuses %s', (_what, given, at) => {
    try {
      chooseSource(given, at);
      expect.unreachable();
    } catch (error) {
      expect(codeOf(error)).toBe('usage_wrong');
    }
  });
});
