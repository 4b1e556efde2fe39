import type { ManifestEntry } from '@firecrew/artifact-capture';
import { describe, expect, it } from 'vitest';
import { layerFilesOf, layerKeyOfSpec } from '../../src/shim/layer-inputs.ts';
import { turnSpec } from './turn-spec.ts';

const entry = (path: string, kind: ManifestEntry['kind'] = 'file', sha256 = 'a'.repeat(64)): ManifestEntry => ({
  path: Buffer.from(path),
  kind,
  size: 1,
  sha256: kind === 'directory' ? '' : sha256,
});
const TREE = [entry('lock'), entry('web/lock', 'executable'), entry('link', 'link'), entry('empty', 'directory'), entry('ü.lock')];
const ID = (digit: string): `sha256:${string}` => `sha256:${digit.repeat(64)}`;
const ARTIFACTS = { kernel: ID('1'), payload: ID('2'), image: ID('3') };

describe('the files of a layer', () => {
  it('are those that are named, as the tree has them, and absent where it has none', () => {
    expect(layerFilesOf(TREE, ['web/lock', 'lock', 'none', 'link', 'ü.lock'])).toEqual([
      { path: 'web/lock', kind: 'executable', sha256: 'a'.repeat(64) },
      { path: 'lock', kind: 'file', sha256: 'a'.repeat(64) },
      { path: 'none', kind: 'absent', sha256: '' },
      { path: 'link', kind: 'link', sha256: 'a'.repeat(64) },
      { path: 'ü.lock', kind: 'file', sha256: 'a'.repeat(64) },
    ]);
  });

  it.each(['web', 'empty'])('are no folders: %s', (name) => {
    expect(() => layerFilesOf(TREE, ['lock', name])).toThrow(expect.objectContaining({ code: 'layer_file_is_folder', id: name }));
  });

  it('are not those of a folder whose name begins alike', () => {
    expect(layerFilesOf(TREE, ['we'])).toEqual([{ path: 'we', kind: 'absent', sha256: '' }]);
  });
});

describe('the key of an attempt', () => {
  const setup = {
    command: 'make deps',
    allow: ['a.example'],
    timeoutMs: 1000,
    layer: { files: ['lock'], workspaceId: 'wsp_0123456789abcdef' },
  };
  const key = (over: object = {}, egress: object = {}): string => {
    const spec = turnSpec({ driver: 'qemu' });
    const changed = { ...spec, egress: { ...spec.egress, ...egress }, setup: { ...setup, ...over } };
    return layerKeyOfSpec(changed, ARTIFACTS, layerFilesOf(TREE, ['lock']));
  };

  it('follows workspace, command and what the set-up may reach; not its time limit, nor what the agent may reach', () => {
    expect(key({ timeoutMs: 5 }, { allow: ['other.example'] })).toBe(key());
    expect(key({}, { ceiling: ['a.example', 'other.example'] })).toBe(key());
    const others = [
      key({ layer: { ...setup.layer, workspaceId: 'wsp_0123456789abcdeg' } }),
      key({ command: 'make' }),
      key({ allow: ['b.example'] }),
      key({}, { ceiling: ['b.a.example'] }),
      key({}, { addressRules: [{ host: 'a.example', addresses: ['192.0.2.1'] }] }),
    ];
    expect(new Set([key(), ...others]).size).toBe(others.length + 1);
  });
});
