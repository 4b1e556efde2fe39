import { describe, expect, it } from 'vitest';
import {
  BASELINE_SETTLE_MS,
  backendKey,
  MAX_HEALTH_AGE_MS,
  PlacementError,
  rememberBaseline,
  requiredBackends,
  resolveDemand,
  sizeDemand,
  VM_SIZING,
} from '../src/index.ts';
import { NOW, node, vms } from './fleet.ts';

const facts = { nowMs: NOW, maxAgeMs: MAX_HEALTH_AGE_MS, settleMs: BASELINE_SETTLE_MS };
const idle = node({ health: { memoryUsedMib: 4314 } });

describe('the remembered baseline', () => {
  it('is the observed use of an idle node, written only when it changed', () => {
    expect(rememberBaseline({ ...facts, node: idle })).toBe(4314);
    expect(rememberBaseline({ ...facts, node: { ...idle, rememberedBaselineMib: 4314 } })).toBeUndefined();
  });

  it.each([
    ['a VM lives', { ...idle, live: { status: 'known', vms: vms(1) } }],
    ['a turn is placed', { ...idle, reserved: vms(1) }],
    ['the VMs are not known', { ...idle, live: { status: 'unknown', error: 'x' } }],
    ['the reading is old', node({ health: { atMs: NOW - MAX_HEALTH_AGE_MS - 1 } })],
    ['the total is 0', node({ health: { memoryTotalMib: 0 } })],
  ] as const)('is not written when %s', (_, record) => {
    expect(rememberBaseline({ ...facts, node: record })).toBeUndefined();
  });

  it('is not written from a reading taken before the host settled after its last VM', () => {
    expect(rememberBaseline({ ...facts, node: idle, lastVmEndedAtMs: NOW - BASELINE_SETTLE_MS + 1 })).toBeUndefined();
    expect(rememberBaseline({ ...facts, node: idle, lastVmEndedAtMs: NOW - BASELINE_SETTLE_MS })).toBe(4314);
  });
});

describe('required backends', () => {
  it.each([
    ['alone', undefined, [], ['default']],
    ['named', 'claude', [], ['claude']],
    ['inherited by blank members', 'claude', ['', '  ', null, undefined], ['claude']],
    ['twice', 'claude', ['claude', 'claude'], ['claude']],
    ['several', 'codex', ['claude', 'default'], ['claude', 'codex', 'default']],
  ] as const)('%s', (_, mission, members, expected) => {
    expect(requiredBackends(mission, members)).toEqual(expected);
  });

  it('have one key for the three spellings of the default, and any other name verbatim', () => {
    expect([undefined, null, '', 'default'].map(backendKey)).toEqual(['default', 'default', 'default', 'default']);
    expect(backendKey('Claude ')).toBe('Claude ');
  });
});

describe('the size of a demand', () => {
  it('takes the defaults of the driver and adds the overhead', () => {
    expect(resolveDemand({}, VM_SIZING)).toEqual({ memoryMib: 8192, diskMib: 12_288, vcpus: 2 });
    expect(sizeDemand({ memoryMib: 512 }, VM_SIZING)).toEqual({ memoryMib: 640, diskMib: 12_288 });
  });

  it.each([
    { memoryMib: 0 },
    { memoryMib: -1 },
    { diskMib: 1.5 },
    { memoryMib: Number.NaN },
    { vcpus: 0 },
    { vcpus: Number.POSITIVE_INFINITY },
  ])('refuses %j', (demand) => {
    expect(() => sizeDemand(demand, VM_SIZING)).toThrow(PlacementError);
  });
});
