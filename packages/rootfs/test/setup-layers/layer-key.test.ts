import { describe, expect, it } from 'vitest';
import { LAYER_FORMAT, type LayerInputs, layerKeyOf } from '../../src/index.ts';

const ID = (digit: string): string => `sha256:${digit.repeat(64)}`;
const LOCK = { path: 'package-lock.json', kind: 'file', sha256: 'a'.repeat(64) } as const;
const ABSENT = { path: 'yarn.lock', kind: 'absent', sha256: '' } as const;
const INPUTS: LayerInputs = {
  workspaceId: 'wsp_0000000000000001',
  driver: 'qemu',
  kernel: ID('1'),
  payload: ID('2'),
  image: ID('3'),
  files: [LOCK, ABSENT],
  command: 'npm ci',
  environment: { A: '1', B: '2' },
  egress: {
    allow: ['one.example.com', 'two.example.com'],
    ceiling: ['.example.com'],
    addressRules: [{ host: 'one.example.com', addresses: ['192.0.2.1', '192.0.2.2'] }],
  },
};
const { egress } = INPUTS;

describe('the key of a layer', () => {
  it('is the same for the same inputs, pinned with the format', () => {
    expect(LAYER_FORMAT).toBe(1);
    expect(layerKeyOf(INPUTS)).toBe('f94082a8984373f32d4e89b96b1205e50dbcbe74bfe53bf733abad5e0051da27');
  });

  it.each<[string, Partial<LayerInputs>]>([
    ['files in another order', { files: [ABSENT, LOCK] }],
    ['a file that is named twice', { files: [LOCK, ABSENT, LOCK] }],
    ['variables in another order', { environment: { B: '2', A: '1' } }],
    ['hosts in another order', { egress: { ...egress, allow: [...egress.allow].reverse() } }],
    [
      'addresses in another order',
      { egress: { ...egress, addressRules: [{ host: 'one.example.com', addresses: ['192.0.2.2', '192.0.2.1'] }] } },
    ],
  ])('does not change with %s', (_what, change) => {
    expect(layerKeyOf({ ...INPUTS, ...change })).toBe(layerKeyOf(INPUTS));
  });

  it.each<[string, Partial<LayerInputs>]>([
    ['another workspace', { workspaceId: 'wsp_0000000000000002' }],
    ['another driver', { driver: 'firecracker' }],
    ['another kernel', { kernel: ID('4') }],
    ['another payload', { payload: ID('4') }],
    ['another image', { image: ID('4') }],
    ['kernel and image swapped', { kernel: ID('3'), image: ID('1') }],
    ['another content of a file', { files: [{ ...LOCK, sha256: 'b'.repeat(64) }, ABSENT] }],
    ['another mode of a file', { files: [{ ...LOCK, kind: 'executable' }, ABSENT] }],
    ['a link of the same text', { files: [{ ...LOCK, kind: 'link' }, ABSENT] }],
    ['a file that is there now', { files: [LOCK, { ...ABSENT, kind: 'file', sha256: 'a'.repeat(64) }] }],
    ['an empty file in place of none', { files: [LOCK, { ...ABSENT, kind: 'file' }] }],
    ['another name of a file', { files: [{ ...LOCK, path: 'npm-shrinkwrap.json' }, ABSENT] }],
    ['one file less that is named', { files: [LOCK] }],
    ['another command', { command: 'npm ci ' }],
    ['another variable', { environment: { A: '1', B: '3' } }],
    ['a variable less', { environment: { A: '1' } }],
    ['a host more', { egress: { ...egress, allow: [...egress.allow, 'three.example.com'] } }],
    ['another ceiling', { egress: { ...egress, ceiling: ['one.example.com'] } }],
    ['an empty ceiling', { egress: { ...egress, ceiling: [] } }],
    ['no ceiling', { egress: { ...egress, ceiling: null } }],
    ['an address less', { egress: { ...egress, addressRules: [{ host: 'one.example.com', addresses: ['192.0.2.1'] }] } }],
    ['a budget', { egress: { ...egress, budgets: '{"turn":{"bytes":1}}' } }],
    ['no address rules', { egress: { ...egress, addressRules: [] } }],
  ])('is another for %s', (_what, change) => {
    expect(layerKeyOf({ ...INPUTS, ...change })).not.toBe(layerKeyOf(INPUTS));
  });

  it('tells no ceiling from an empty one', () => {
    const key = (ceiling: readonly string[] | null): string => layerKeyOf({ ...INPUTS, egress: { ...egress, ceiling } });
    expect(key(null)).not.toBe(key([]));
  });
});
