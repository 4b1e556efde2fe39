import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { describeEnd, EXIT_CAUSES } from '../../src/firecracker-driver/describe-end.ts';
import { judgeVersion } from '../../src/firecracker-driver/features.ts';
import { type JailerRun, jailerArguments } from '../../src/firecracker-driver/jailer-arguments.ts';
import { mountOptionsOf } from '../../src/firecracker-driver/mount-options.ts';
import { diskSerial, type FirecrackerVm, kernelCommandLine, planCalls } from '../../src/firecracker-driver/plan-calls.ts';
import { diskLimiter, type TokenBucket } from '../../src/firecracker-driver/rate-limits.ts';
import { faultOfMetrics } from '../../src/firecracker-driver/read-metrics.ts';
import { LINK_VSOCK_PORT, runPlaces } from '../../src/firecracker-driver/run-places.ts';
import { machineId, machineIdPrefix } from '../../src/processes/machine-id.ts';
import { ApiDescription } from './simulator/api-description.ts';

const DESCRIPTION = fileURLToPath(new URL('../../../../tests/cases/firecracker/firecracker.yaml', import.meta.url));

const vm: FirecrackerVm = {
  memoryMib: 512,
  cpus: 2,
  paths: {
    api: '/a',
    vsock: '/v',
    console: '/console',
    log: '/log',
    metrics: '/metrics',
    kernel: '/kernel',
    initrd: '/initrd',
    base: '/base',
    payload: '/payload',
    scratch: '/scratch',
    layer: '/layer',
  },
  serials: { base: '1', payload: '2', scratch: '3', layer: undefined },
  rescue: false,
};

function featuresOf(version: string) {
  const verdict = judgeVersion(version);
  if (!verdict.supported) throw new Error(verdict.reason);
  return verdict.features;
}

describe('the version of a Firecracker', () => {
  it.each([
    ['1.14.9', 'too_old'],
    ['1.15.0-dev', 'too_old'],
    ['0.25.2', 'too_old'],
    ['2.0.0', 'unknown_major'],
    ['', 'unreadable'],
    ['1.16', 'unreadable'],
    ['1.16.1; rm -rf /', 'unreadable'],
  ])('%s is refused as %s', (version, reason) => {
    expect(judgeVersion(version)).toEqual({ supported: false, reason });
  });

  it.each([
    ['1.15.1', false, false],
    ['1.16.0', true, false],
    ['1.16.1', true, false],
    ['v1.16.1', true, false],
    ['1.17.0-dev', true, false],
    ['1.17.0', true, true],
    ['1.30.2', true, true],
  ])('%s limits the console: %s, gives deleted blocks back: %s', (version, serialRateLimiter, discard) => {
    expect(featuresOf(version)).toEqual({ serialRateLimiter, discard });
  });
});

describe('the configuration of a VM', () => {
  const faults = (calls: ReturnType<typeof planCalls>, minor: number): (string | undefined)[] => {
    const api = new ApiDescription(DESCRIPTION, minor);
    return calls.map(({ method, path, body }) => {
      const operation = api.operation(method, path);
      return operation === undefined ? `no ${method} ${path}` : api.fault(body, operation.body ?? {});
    });
  };
  const limited: FirecrackerVm = {
    ...vm,
    diskLimits: { bandwidth: { size: 100_000_000, refillMs: 1000, burst: 500_000_000 }, operations: { size: 10_000, refillMs: 1000 } },
  };

  it.each(['1.15.1', '1.16.0', '1.16.1', '1.17.0'])('is what the published description of the API allows, at %s', (version) => {
    const minor = Number(version.split('.')[1]);
    expect(faults(planCalls(limited, featuresOf(version)), minor).filter(Boolean)).toEqual([]);
  });

  it('would be refused by a release that is older than its fields', () => {
    expect(faults(planCalls(vm, featuresOf('1.16.1')), 15).filter(Boolean)).toEqual([
      'unknown field `rate_limiter`, expected one of `serial_out_path`',
    ]);
    expect(faults(planCalls(vm, featuresOf('1.17.0')), 16).filter(Boolean)).toEqual([expect.stringMatching(/^unknown field `discard`/)]);
  });

  it('comes in this order, the start last', () => {
    expect(planCalls(vm, featuresOf('1.16.1')).map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /logger',
      'PUT /metrics',
      'PUT /serial',
      'PUT /machine-config',
      'PUT /boot-source',
      'PUT /drives/base',
      'PUT /drives/payload',
      'PUT /drives/scratch',
      'PUT /vsock',
      'PUT /entropy',
      'PUT /actions',
    ]);
  });

  it('opens what VMs share read-only, and lets a flush of the guest reach the disk', () => {
    const drives = planCalls(vm, featuresOf('1.17.0')).filter(({ path }) => path.startsWith('/drives/'));
    expect(drives.map(({ body }) => [body?.drive_id, body?.is_read_only, body?.cache_type, body?.discard])).toEqual([
      ['base', true, 'Unsafe', undefined],
      ['payload', true, 'Unsafe', undefined],
      ['scratch', false, 'Writeback', true],
    ]);
    expect(drives.every(({ body }) => body?.is_root_device === false && body.io_engine === 'Sync')).toBe(true);
  });

  it('attaches a layer read-only where there is one, and tells guest-init of it', () => {
    const layered = { ...vm, serials: { ...vm.serials, layer: '4' } };
    const [drive] = planCalls(layered, featuresOf('1.17.0')).filter(({ path }) => path === '/drives/layer');
    expect(drive?.body).toMatchObject({ path_on_host: '/layer', is_read_only: true, is_root_device: false });
    expect(kernelCommandLine(layered)).toContain(' firecrew.layer=serial:4');
    expect(kernelCommandLine(vm)).not.toContain('layer');
  });

  it('has no network card', () => {
    for (const { path } of planCalls(limited, featuresOf('1.17.0'))) expect(path).not.toMatch(/network|mmds/);
  });

  it('tells the kernel what it needs, within 2,048 bytes with what Firecracker adds', () => {
    const line = kernelCommandLine({
      serials: { base: '9'.repeat(20), payload: '8'.repeat(20), scratch: '7'.repeat(20), layer: '6'.repeat(20) },
      rescue: true,
    });
    const words = line.split(' ');
    expect(words).toEqual(expect.arrayContaining(['reboot=k', 'panic=1', `firecrew.link=vsock:${LINK_VSOCK_PORT}`, 'firecrew.rescue=1']));
    expect(line).not.toMatch(/nomodule|pci=off|nr_uarts=0/);
    expect(Buffer.byteLength(line)).toBeLessThan(2048 - 512);
    expect(kernelCommandLine(vm)).not.toContain('rescue');
  });

  it('knows a disk by the serial that Firecracker gives it', () => {
    expect(diskSerial({ dev: 64_768n, rdev: 0n, ino: 1_234_567n })).toBe('6476801234567');
    expect(diskSerial({ dev: 1_048_576_001n, rdev: 0n, ino: 9_007_199_254_740_993n })).toBe('10485760010900719925');
  });
});

describe('the rate limit of a disk', () => {
  const good: TokenBucket = { size: 1_048_576, refillMs: 100 };
  it.each<[string, Parameters<typeof diskLimiter>[0]]>([
    ['no bytes, which means no limit', { bandwidth: { ...good, size: 0 } }],
    ['fewer bytes than one request', { bandwidth: { ...good, size: 1_048_575 } }],
    ['no time, which means no limit', { bandwidth: { ...good, refillMs: 0 } }],
    ['a time below 100 ms', { operations: { size: 100, refillMs: 99 } }],
    ['part of an operation', { operations: { size: 1.5, refillMs: 100 } }],
    ['a burst that is no number of tokens', { bandwidth: { ...good, burst: -1 } }],
  ])('is refused with %s', (_, limits) => {
    expect(() => diskLimiter(limits)).toThrow(expect.objectContaining({ code: 'bad_rate_limit' }));
  });

  it('is given to the API in its own words, or left out', () => {
    expect(diskLimiter({ bandwidth: good, operations: { size: 1, refillMs: 100, burst: 5 } })).toEqual({
      bandwidth: { size: 1_048_576, refill_time: 100 },
      ops: { size: 1, refill_time: 100, one_time_burst: 5 },
    });
    expect([diskLimiter(undefined), diskLimiter({})]).toEqual([undefined, undefined]);
  });
});

describe('the ids of VMs', () => {
  it('hold no underscore, fit a jail, and begin alike for one attempt alone', () => {
    const id = machineId('trn_abc.1.2', 'deadbeef');
    expect(id).toMatch(/^[a-z0-9-]{1,55}$/);
    expect(id.startsWith(machineIdPrefix('trn_abc.1.2'))).toBe(true);
    expect(id.startsWith(machineIdPrefix('trn_abc.1.3'))).toBe(false);
  });

  it('leave names of sockets that fit in the longest folder a home can have', () => {
    const longest = `/${'h'.repeat(57)}/node/turns/trn_${'t'.repeat(16)}.99/v99a`;
    for (const path of Object.values(runPlaces(longest, true))) expect(Buffer.byteLength(path)).toBeLessThanOrEqual(107);
  });
});

describe('the command line of the jailer', () => {
  const run: JailerRun = {
    settings: { program: '/usr/local/bin/jailer' },
    id: 'fc0-1',
    firecracker: '/usr/local/bin/firecracker',
    owner: { uid: 20_001, gid: 20_001 },
    chrootBase: '/t/j',
    memoryMib: 1000,
    diskMib: 100,
    cpus: 2,
    arguments: ['--api-sock', '/a'],
  };
  const valuesOf = (args: readonly string[], name: string): (string | undefined)[] =>
    args.flatMap((arg, at) => (arg === name ? [args[at + 1]] : []));

  it('names user, jail and program, and hands the rest to Firecracker', () => {
    const args = jailerArguments(run);
    expect(args.slice(0, 10)).toEqual([
      ...['--id', 'fc0-1', '--exec-file', '/usr/local/bin/firecracker', '--uid', '20001', '--gid', '20001', '--chroot-base-dir', '/t/j'],
    ]);
    expect(args.slice(args.indexOf('--'))).toEqual(['--', '--api-sock', '/a']);
  });

  it('makes a group of version 2 with limits above what the guest may use', () => {
    const args = jailerArguments(run);
    expect([valuesOf(args, '--cgroup-version'), valuesOf(args, '--parent-cgroup')]).toEqual([['2'], ['firecrew']]);
    expect(valuesOf(args, '--cgroup')).toEqual([`memory.max=${(1000 + 100 + 32) * 1024 * 1024}`, 'pids.max=34', 'cpu.max=250000 100000']);
  });

  it('limits files to a little more than the disk, and descriptors', () => {
    expect(valuesOf(jailerArguments(run), '--resource-limit')).toEqual([`fsize=${101 * 1024 * 1024}`, 'no-file=2048']);
  });

  it('adds what the operator asks for, and nothing else', () => {
    const plain = jailerArguments(run);
    for (const flag of ['--netns', '--new-pid-ns', '--daemonize']) expect(plain).not.toContain(flag);
    const settings = {
      ...run.settings,
      parentCgroup: 'vms/of-agents',
      cgroup: ['io.max=8:0 wbps=1000000'],
      networkNamespace: '/var/run/netns/empty',
      processNamespace: true,
      daemonize: true,
    };
    const args = jailerArguments({ ...run, settings });
    expect(valuesOf(args, '--parent-cgroup')).toEqual(['vms/of-agents']);
    expect(valuesOf(args, '--cgroup')).toContain('io.max=8:0 wbps=1000000');
    expect(valuesOf(args, '--netns')).toEqual(['/var/run/netns/empty']);
    expect(args.indexOf('--new-pid-ns')).toBeLessThan(args.indexOf('--'));
    expect(args.indexOf('--daemonize')).toBeLessThan(args.indexOf('--'));
  });
});

describe('the end of a Firecracker', () => {
  const clean = { code: 0, signal: null };
  const killed = { code: null, signal: 'SIGKILL' };
  const panic = ['[    1.2] Kernel panic - not syncing: Attempted to kill init!'];
  const deadlock = ['[    9.2] Kernel panic - not syncing: System is deadlocked on memory'];
  const stopped = ['firecrew-init: 900 ms agent stopped after 800 ms'];
  const other = ['firecrew-init: 900 ms failed agent: ended with status 1 after 800 ms'];
  it.each([
    ['stopped', { exit: clean, wasAsked: true, console: [] }],
    ['stopped', { exit: clean, wasAsked: false, console: stopped }],
    ['guest_reset', { exit: clean, wasAsked: false, console: other }],
    ['guest_reset', { exit: clean, wasAsked: false, console: ['agent: firecrew-init: 900 ms agent stopped after 800 ms'] }],
    ['guest_panic', { exit: clean, wasAsked: false, console: panic }],
    ['guest_out_of_memory', { exit: clean, wasAsked: false, console: deadlock }],
    ['vmm_killed', { exit: killed, wasAsked: true, console: stopped }],
    ['host_out_of_memory', { exit: killed, wasAsked: false, console: [], outOfMemory: true }],
    ['stopped', { exit: clean, wasAsked: true, console: [], outOfMemory: true }],
    ['vmm_unexpected_error', { exit: { code: 77, signal: null }, wasAsked: false, console: panic }],
    ['unknown', { exit: null, wasAsked: false, console: other }],
    ['guest_panic', { exit: null, wasAsked: false, console: panic }],
    ['stopped', { exit: null, wasAsked: true, console: [] }],
    ['vmm_memory_missing', { exit: null, wasAsked: false, console: [], fault: 'vmm_memory_missing' }],
  ] as const)('is %s', (cause, end) => {
    expect(describeEnd({ outOfMemory: false, ...end })).toBe(cause);
  });

  it('is named by each of its exit codes', () => {
    const named = EXIT_CAUSES.map(([code]) =>
      describeEnd({ exit: { code, signal: null }, wasAsked: true, outOfMemory: false, console: [] }),
    );
    expect(named).toEqual(EXIT_CAUSES.map(([, cause]) => cause));
    expect(EXIT_CAUSES.map(([code]) => code)).toEqual([1, 2, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157]);
  });

  it.each([
    ['vmm_forbidden_call', '{"seccomp":{"num_faults":0}}\n{"seccomp":{"num_faults":1},"signals":{"sigbus":0}}\n'],
    ['vmm_memory_missing', '{"signals":{"sigbus":1}}\n'],
    [undefined, '{"signals":{"sigbus":1}}\n{"signals":{"sigbus":0}}\n'],
    [undefined, '{"signals":{"sigbus":"1"}}\n'],
    [undefined, '{"signals":'],
    [undefined, ''],
  ])('is told by its last metrics as %s', (cause, text) => {
    expect(faultOfMetrics(text)).toBe(cause);
  });
});

describe('the mount of a folder', () => {
  const MOUNTS = [
    '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '30 22 0:25 / /tmp rw,nosuid,nodev shared:2 - tmpfs tmpfs rw',
    '31 22 8:2 / /srv/two\\040words rw,noexec - ext4 /dev/sda2 rw',
    '32 30 8:3 / /tmp rw,relatime - ext4 /dev/sda3 rw',
    '',
  ].join('\n');
  it.each([
    ['/var/lib/firecrew', ['rw', 'relatime']],
    ['/tmpfiles', ['rw', 'relatime']],
    ['/tmp/x', ['rw', 'relatime']],
    ['/srv/two words/x', ['rw', 'noexec']],
  ])('of %s has the options %s', (path, options) => {
    expect(mountOptionsOf(MOUNTS, path)).toEqual(options);
  });

  it('has none that anybody could name in a list that names none', () => {
    expect(mountOptionsOf('', '/var')).toEqual([]);
  });
});
