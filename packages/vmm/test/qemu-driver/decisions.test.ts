import { describe, expect, it } from 'vitest';
import { describeEnd } from '../../src/qemu-driver/describe-end.ts';
import { kernelCommandLine, type QemuMachine, qemuArguments } from '../../src/qemu-driver/qemu-arguments.ts';

const machine: QemuMachine = {
  accelerator: 'tcg',
  machine: 'q35',
  memoryMib: 512,
  cpus: 1,
  kernel: '/k',
  initrd: '/i',
  base: '/b',
  payload: '/p',
  layer: undefined,
  scratch: '/s',
  rescue: false,
  linkSocket: '/l/s',
  qmpSocket: '/l/q',
};

/** Each option with the value behind it. */
function options(args: readonly string[]): [string, string][] {
  return args.flatMap((arg, index): [string, string][] => (arg.startsWith('-') ? [[arg, args[index + 1] ?? '']] : []));
}

describe('the command line of QEMU', () => {
  it('gives the guest no network, no display and no default device', () => {
    const args = qemuArguments(machine);
    expect(args).toEqual(expect.arrayContaining(['-nodefaults', '-no-user-config']));
    expect(options(args)).toEqual(
      expect.arrayContaining([
        ['-nic', 'none'],
        ['-display', 'none'],
      ]),
    );
    expect(args.join(' ')).not.toMatch(/netdev|virtio-net|usb-|vnc|spice/);
  });

  it('names one accelerator and no second to fall back on', () => {
    for (const accelerator of ['kvm', 'hvf', 'tcg'] as const) {
      const args = qemuArguments({ ...machine, accelerator });
      const named = options(args).flatMap(([option, value]) => (option === '-accel' ? [value] : []));
      // Translated code is bounded: the limit of a VM's memory counts on it.
      expect(named).toEqual([accelerator === 'tcg' ? 'tcg,tb-size=256' : accelerator]);
      expect(args.join(' ')).not.toContain('accel=');
    }
  });

  it('denies QEMU what it needs only for features that are off', () => {
    expect(options(qemuArguments(machine))).toContainEqual([
      '-sandbox',
      'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
    ]);
  });

  it('opens base and payload read-only, and tells the guest when it is there to rescue', () => {
    const disks = (args: readonly string[]): string[] =>
      options(args).flatMap(([option, value]) => (option === '-blockdev' ? [value] : []));
    const readOnly = (args: readonly string[]): unknown[] =>
      disks(args).map((value) => [/node-name=(\w+)/.exec(value)?.[1], /read-only=(\w+)/.exec(value)?.[1]]);
    expect(readOnly(qemuArguments(machine))).toEqual([
      ['base', 'on'],
      ['payload', 'on'],
      ['scratch', 'off'],
    ]);
    expect(kernelCommandLine({ ...machine, rescue: true })).toContain('firecrew.rescue=1');
    expect(kernelCommandLine(machine)).not.toContain('rescue');
  });

  it("attaches a layer read-only, before the VM's own disk, and tells guest-init of it", () => {
    const layered = { ...machine, layer: '/layer' };
    const disks = options(qemuArguments(layered)).flatMap(([option, value]) => (option === '-blockdev' ? [value] : []));
    expect(disks[2]).toBe('driver=raw,node-name=layer,read-only=on,file.driver=file,file.filename=/layer');
    expect(qemuArguments(layered)).toContain('virtio-blk-pci,drive=layer,serial=firecrew-layer');
    expect(kernelCommandLine(layered)).toContain(' firecrew.layer=serial:firecrew-layer');
    expect(kernelCommandLine(machine)).not.toContain('layer');
  });

  it('lets no path begin another option of a list', () => {
    const args = qemuArguments({ ...machine, base: '/x,read-only=off', linkSocket: '/l,server=on' }).join('\n');
    expect(args).toContain('file.filename=/x,,read-only=off');
    expect(args).toContain('path=/l,,server=on');
  });

  it('tells the kernel at most 2,048 bytes', () => {
    expect(kernelCommandLine(machine).length).toBeLessThan(2048);
  });
});

describe('the end of a VM', () => {
  const SHUTDOWN = (reason: string) => ({ name: 'SHUTDOWN', reason });
  it.each([
    ['guest_panic', [{ name: 'GUEST_PANICKED', reason: undefined }, SHUTDOWN('guest-panic')], { code: 1, signal: null }],
    ['guest_panic', [SHUTDOWN('guest-panic')], { code: 0, signal: null }],
    ['guest_poweroff', [SHUTDOWN('guest-shutdown')], { code: 0, signal: null }],
    ['guest_reset', [SHUTDOWN('guest-reset')], { code: 0, signal: null }],
    ['stopped', [SHUTDOWN('host-qmp-quit')], { code: 0, signal: null }],
    ['vmm_killed', [], { code: null, signal: 'SIGKILL' }],
    ['vmm_failed', [], { code: 1, signal: null }],
    ['vmm_failed', [SHUTDOWN('constructor')], { code: 0, signal: null }],
    ['vmm_failed', [{ name: 'RESET', reason: undefined }], { code: 0, signal: null }],
  ] as const)('is %s', (cause, events, exit) => {
    expect(describeEnd(events, exit, false, [])).toBe(cause);
  });

  it('is told when the memory limit of its group brought it about, and only when nothing else did', () => {
    expect(describeEnd([], { code: null, signal: 'SIGKILL' }, true, [])).toBe('host_out_of_memory');
    expect(describeEnd([SHUTDOWN('guest-reset')], { code: 0, signal: null }, true, [])).toBe('guest_reset');
  });

  it('is a panic too where the console alone tells it', () => {
    const early = ['[    1.2] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)'];
    expect(describeEnd([SHUTDOWN('guest-reset')], { code: 0, signal: null }, false, early)).toBe('guest_panic');
    expect(describeEnd([SHUTDOWN('guest-shutdown')], { code: 0, signal: null }, false, early)).toBe('guest_poweroff');
  });

  it('is told when its console says that memory ran out, and only where it ended itself', () => {
    const init = ['firecrew-init: 90 ms failed agent: killed by signal 9 after 80 ms; memory ran out'];
    const clean = { code: 0, signal: null };
    expect(describeEnd([SHUTDOWN('guest-reset')], clean, false, init)).toBe('guest_out_of_memory');
    expect(describeEnd([SHUTDOWN('guest-panic')], clean, false, init)).toBe('guest_out_of_memory');
    expect(describeEnd([SHUTDOWN('guest-shutdown')], clean, false, init)).toBe('guest_poweroff');
    expect(describeEnd([], { code: 1, signal: null }, false, init)).toBe('vmm_failed');
  });
});
