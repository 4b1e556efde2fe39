import { describe, expect, it } from 'vitest';
import { chooseParent } from '../../src/cgroup/choose-parent.ts';
import { judgeLimits } from '../../src/cgroup/judge-limits.ts';
import { qemuLimits } from '../../src/qemu-driver/qemu-driver.ts';

const MIB = 1024 * 1024;

describe('the limits of a QEMU', () => {
  it.each([
    // guest, a tenth, QEMU itself, translated code
    [512, 1, 'kvm', 512 + 52 + 192, '150000 100000', 97],
    [512, 1, 'tcg', 512 + 52 + 192 + 256, '150000 100000', 97],
    [8192, 4, 'kvm', 8192 + 820 + 192, '450000 100000', 100],
    [192, 32, 'tcg', 192 + 20 + 192 + 256, '3250000 100000', 128],
  ] as const)('of %i MiB and %i processors under %s', (memoryMib, cpus, accelerator, mib, cpu, threads) => {
    expect(qemuLimits(memoryMib, cpus, accelerator)).toEqual([
      { file: 'memory.max', value: String(mib * MIB) },
      { file: 'memory.swap.max', value: '0' },
      { file: 'pids.max', value: String(threads) },
      { file: 'cpu.max', value: cpu },
    ]);
  });
});

const line = (root: string, point: string, type: string): string => `42 30 0:39 ${root} ${point} rw,nosuid shared:9 - ${type} ${type} rw\n`;
const MOUNTS = line('/', '/proc', 'proc') + line('/', '/sys/fs/cgroup', 'cgroup2');

describe('the group below which VMs get theirs', () => {
  it.each([
    ['is the own one', MOUNTS, '0::/system.slice/firecrew.service\n', undefined, '/sys/fs/cgroup/system.slice/firecrew.service'],
    [
      'is the one above the services',
      MOUNTS,
      '0::/system.slice/f.service/firecrew-services\n',
      undefined,
      '/sys/fs/cgroup/system.slice/f.service',
    ],
    ['is the root for who is in it', MOUNTS, '0::/\n', undefined, '/sys/fs/cgroup'],
    ['is the named one', MOUNTS, '0::/user.slice\n', 'vms/agents', '/sys/fs/cgroup/vms/agents'],
    [
      'is found where both versions are mounted',
      line('/', '/sys/fs/cgroup/memory', 'cgroup') + line('/', '/sys/fs/cgroup/unified', 'cgroup2'),
      '4:memory:/x\n0::/a\n',
      undefined,
      '/sys/fs/cgroup/unified/a',
    ],
    ['is found below a mount of a part', line('/docker/1', '/sys/fs/cgroup', 'cgroup2'), '0::/docker/1/a\n', undefined, '/sys/fs/cgroup/a'],
    ['is found at a place with a blank', line('/', '/mnt/c\\040g', 'cgroup2'), '0::/a\n', undefined, '/mnt/c g/a'],
  ])('%s', (_, mounts, own, named, folder) => {
    expect(chooseParent({ mounts, own, named })).toEqual({ folder });
  });

  it.each([
    ['without version 2', line('/', '/sys/fs/cgroup/memory', 'cgroup'), '0::/\n', 'vms', 'not mounted'],
    ['with an own group of version 1 alone', MOUNTS, '4:memory:/x\n', undefined, 'not below'],
    ['with an own group outside of the mount', line('/docker/1', '/sys/fs/cgroup', 'cgroup2'), '0::/docker/2\n', undefined, 'not below'],
  ])('is none %s', (_, mounts, own, named, why) => {
    expect(chooseParent({ mounts, own, named })).toEqual({ why: expect.stringContaining(why) });
  });
});

describe('the verdict on limits', () => {
  const ok = [{ file: 'memory.max' }, { file: 'memory.swap.max' }, { file: 'cpu.max' }, { file: 'pids.max' }] as const;
  const noCpu = ok.map((limit) => (limit.file === 'cpu.max' ? { ...limit, why: 'no cpu controller' } : limit));
  const nothing = ok.map((limit) => ({ ...limit, why: 'read-only' }));
  const all = ok.map(({ file }) => file);

  it.each([
    [
      'all',
      { parent: '/g', limits: ok },
      '/g',
      all,
      /^memory, swap, processors, threads of each VMM limited by a group of its own below \/g$/,
      false,
    ],
    [
      'some',
      { parent: '/g', limits: noCpu },
      '/g',
      all.filter((file) => file !== 'cpu.max'),
      /^memory, swap, threads .*; NOT LIMITED: processors \(no cpu controller\)$/,
      true,
    ],
    ['none', { parent: '/g', limits: nothing }, undefined, [], /^NOT LIMITED by the host: .* \(read-only\)$/, true],
    ['no group', { why: 'not mounted' }, undefined, [], /^NOT LIMITED by the host: .* \(not mounted\)$/, true],
  ] as const)('where %s of them can be set', (_, trial, parent, files, detail, refusedWhenDemanded) => {
    expect(judgeLimits(trial, false)).toEqual({ parent, files, detail: expect.stringMatching(detail), refused: false });
    expect(judgeLimits(trial, true).refused).toBe(refusedWhenDemanded);
  });
});
