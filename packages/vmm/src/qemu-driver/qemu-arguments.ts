import { type Accelerator, DISK_SERIAL, LINK_PORT_NAME, type MachineModel } from '../machine/vm-assets.ts';

/** Everything that the command line of one QEMU depends on. */
export interface QemuMachine {
  readonly accelerator: Accelerator;
  readonly machine: MachineModel;
  readonly memoryMib: number;
  readonly cpus: number;
  /** Paths as QEMU opens them. */
  readonly kernel: string;
  readonly initrd: string;
  readonly base: string;
  readonly payload: string;
  /** Undefined for none. */
  readonly layer: string | undefined;
  /** The VM's own disk. Writable in a rescue too: what a killed VM left in its journal has to be replayed first. */
  readonly scratch: string;
  /** Only read what the scratch disk of a dead VM holds; nothing of it or of the image is executed. */
  readonly rescue: boolean;
  /** Sockets that the host listens on; QEMU dials both, so neither can be stale. */
  readonly linkSocket: string;
  readonly qmpSocket: string;
}

/** Time after which QEMU dials the link socket again when the host has ended a session, in seconds; it counts in whole ones. */
export const LINK_RECONNECT_S = 1;

/** Translated code of a guest under emulation, in MiB. QEMU's own bound is a gigabyte, which a guest can fill at will. */
export const TCG_CACHE_MIB = 256;

/** Trimmed as measured: what a headless VM never uses costs boot time and attack surface. */
const MODELS = { q35: 'q35,smm=off,hpet=off,usb=off,vmport=off,sata=off,smbus=off,graphics=off', microvm: 'microvm,pcie=on' } as const;
const ACCELERATORS = { kvm: 'kvm', hvf: 'hvf', tcg: `tcg,tb-size=${TCG_CACHE_MIB}` } as const;
/** Emulated, each fault of a page walks its tables in software: a fifth level of them is of no use to a small guest. */
const CPU = { kvm: 'host', hvf: 'host', tcg: 'max,la57=off' } as const;
/** No calls that QEMU needs only for features that are off: no new programs, no other user, no other priorities. */
const SECCOMP = 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny';

/** Machine and processor, as every QEMU of a node gets them: what a probe boots is what VMs run on. */
export function machineArguments({ machine, accelerator }: Pick<QemuMachine, 'machine' | 'accelerator'>): string[] {
  return ['-machine', MODELS[machine], '-accel', ACCELERATORS[accelerator], '-cpu', CPU[accelerator]];
}

/** The command line, without the program. No network card, no display, no default device. */
export function qemuArguments(vm: QemuMachine): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-nic', 'none'],
    ...machineArguments(vm),
    ...['-m', `${vm.memoryMib}M`, '-smp', String(vm.cpus)],
    // A guest that resets, powers off or panics ends its QEMU; the event on the monitor says which.
    ...['-no-reboot', '-action', 'panic=exit-failure'],
    ...['-sandbox', SECCOMP],
    ...['-kernel', vm.kernel, '-initrd', vm.initrd, '-append', kernelCommandLine(vm)],
    ...disk('base', vm.base, true),
    ...disk('payload', vm.payload, true),
    ...(vm.layer === undefined ? [] : disk('layer', vm.layer, true)),
    ...disk('scratch', vm.scratch, false),
    ...['-object', 'rng-random,id=entropy,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=entropy'],
    ...['-device', 'pvpanic-pci'],
    ...[
      '-chardev',
      `socket,id=link,path=${quoted(vm.linkSocket)},reconnect=${LINK_RECONNECT_S}`,
      '-device',
      'virtio-serial-pci,max_ports=2',
    ],
    ...['-device', `virtserialport,chardev=link,name=${LINK_PORT_NAME}`],
    ...['-chardev', `socket,id=monitor,path=${quoted(vm.qmpSocket)}`, '-mon', 'chardev=monitor,mode=control'],
    ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
  ];
}

/** What the kernel and guest-init are told; every process of the guest can read it, so it holds no secret. */
export function kernelCommandLine(vm: Pick<QemuMachine, 'rescue' | 'layer'>): string {
  return [
    'console=ttyS0 quiet loglevel=3 panic=-1 reboot=k,force random.trust_cpu=on',
    // Emulated on a busy host the timer may come too late for the kernel's test of it, which then panics.
    'no_timer_check',
    // Mounts and modules wait for grace periods of RCU; nothing in a VM is disturbed by short ones.
    'rcupdate.rcu_expedited=1',
    `firecrew.link=virtio:${LINK_PORT_NAME}`,
    `firecrew.base=serial:${DISK_SERIAL.base}`,
    `firecrew.scratch=serial:${DISK_SERIAL.scratch}`,
    `firecrew.payload=serial:${DISK_SERIAL.payload}`,
    ...(vm.layer === undefined ? [] : [`firecrew.layer=serial:${DISK_SERIAL.layer}`]),
    ...(vm.rescue ? ['firecrew.rescue=1'] : []),
  ].join(' ');
}

function disk(name: keyof typeof DISK_SERIAL, path: string, readOnly: boolean): string[] {
  const backing = `driver=raw,node-name=${name},read-only=${readOnly ? 'on' : 'off'},file.driver=file,file.filename=${quoted(path)}`;
  return ['-blockdev', backing, '-device', `virtio-blk-pci,drive=${name},serial=${DISK_SERIAL[name]}`];
}

/** A comma ends a value in QEMU's option lists unless it is doubled. */
function quoted(path: string): string {
  return path.replaceAll(',', ',,');
}
