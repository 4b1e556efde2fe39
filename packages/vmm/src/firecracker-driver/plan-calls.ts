import type { BigIntStats } from 'node:fs';
import type { FirecrackerFeatures } from './features.ts';
import { CONSOLE_LIMIT, type DiskLimits, diskLimiter, MIN_CONSOLE_BYTES, tokenBucket } from './rate-limits.ts';
import { LINK_VSOCK_PORT, type RunName } from './run-places.ts';

/** One request of the API. */
export interface ApiCall {
  readonly method: 'GET' | 'PUT' | 'PATCH';
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** Everything that the configuration of one VM depends on. */
export interface FirecrackerVm {
  readonly memoryMib: number;
  readonly cpus: number;
  /** Paths as Firecracker opens them. */
  readonly paths: Readonly<Record<RunName, string>>;
  /** Serials that Firecracker gives its disks. */
  readonly serials: DiskSerials;
  /** Of the writable disk. */
  readonly diskLimits?: DiskLimits | undefined;
  /** Only read what the scratch disk of a dead VM holds. */
  readonly rescue: boolean;
}

/** Serial of each disk of a VM. */
export interface DiskSerials {
  readonly base: string;
  readonly payload: string;
  readonly scratch: string;
  /** Undefined for a VM without that disk. */
  readonly layer: string | undefined;
}

const DISK_NAMES = ['base', 'scratch', 'payload', 'layer'] as const satisfies (keyof DiskSerials)[];
/** Every VM has its own socket, so the number tells nobody apart. */
const GUEST_CID = 3;
/** Bytes of the serial of a virtio disk. */
const SERIAL_BYTES = 20;

/**
 * The calls that make a VM, in their order, with the start as the last. There is no network card. Throws `bad_rate_limit`.
 */
export function planCalls(vm: FirecrackerVm, features: FirecrackerFeatures): ApiCall[] {
  const { paths } = vm;
  const limiter = diskLimiter(vm.diskLimits);
  const serialLimit = features.serialRateLimiter ? { rate_limiter: tokenBucket('console', CONSOLE_LIMIT, MIN_CONSOLE_BYTES) } : {};
  // A guest fsync reaches the disk with Writeback alone.
  const scratch = { ...(features.discard ? { discard: true } : {}), ...(limiter === undefined ? {} : { rate_limiter: limiter }) };
  return [
    put('/logger', { log_path: paths.log, level: 'Warning', show_level: true, show_log_origin: false }),
    put('/metrics', { metrics_path: paths.metrics }),
    put('/serial', { serial_out_path: paths.console, ...serialLimit }),
    put('/machine-config', { vcpu_count: vm.cpus, mem_size_mib: vm.memoryMib, smt: false }),
    put('/boot-source', { kernel_image_path: paths.kernel, initrd_path: paths.initrd, boot_args: kernelCommandLine(vm) }),
    drive('base', paths.base, true, 'Unsafe'),
    drive('payload', paths.payload, true, 'Unsafe'),
    ...(vm.serials.layer === undefined ? [] : [drive('layer', paths.layer, true, 'Unsafe')]),
    drive('scratch', paths.scratch, false, 'Writeback', scratch),
    put('/vsock', { guest_cid: GUEST_CID, uds_path: paths.vsock }),
    put('/entropy', {}),
    put('/actions', { action_type: 'InstanceStart' }),
  ];
}

/**
 * What the kernel and guest-init are told; every process of the guest can read it, so it holds no secret. It replaces Firecracker's
 * own line, which forbids modules. Its parts are bounded: with what Firecracker adds it stays below the 2,048 bytes there are.
 */
export function kernelCommandLine({ serials, rescue }: Pick<FirecrackerVm, 'serials' | 'rescue'>): string {
  return [
    'console=ttyS0 quiet loglevel=3 reboot=k panic=1 random.trust_cpu=on',
    'i8042.noaux i8042.nomux i8042.nopnp i8042.dumbkbd',
    `firecrew.link=vsock:${LINK_VSOCK_PORT}`,
    ...DISK_NAMES.flatMap((name) => (serials[name] === undefined ? [] : [`firecrew.${name}=serial:${serials[name]}`])),
    ...(rescue ? ['firecrew.rescue=1'] : []),
  ].join(' ');
}

/** The serial that Firecracker gives the disk of an image: device, device number and inode behind one another, cut off. */
export function diskSerial({ dev, rdev, ino }: Pick<BigIntStats, 'dev' | 'rdev' | 'ino'>): string {
  return `${dev}${rdev}${ino}`.slice(0, SERIAL_BYTES);
}

function drive(id: string, path: string, readOnly: boolean, cache: string, more: Readonly<Record<string, unknown>> = {}): ApiCall {
  const body = { drive_id: id, path_on_host: path, is_root_device: false, is_read_only: readOnly, cache_type: cache, io_engine: 'Sync' };
  return put(`/drives/${id}`, { ...body, ...more });
}

function put(path: string, body: Readonly<Record<string, unknown>>): ApiCall {
  return { method: 'PUT', path, body };
}
