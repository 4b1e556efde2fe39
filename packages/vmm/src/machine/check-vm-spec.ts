import { isAbsolute } from 'node:path';
import { CodedError } from '@firecrew/base';
import { MAX_SOCKET_PATH_BYTES } from '@firecrew/link';
import type { BootSpec } from '../port/driver.ts';

/** Memory below which the kernel and Node do not come up, in MiB. */
export const MIN_VM_MEMORY_MIB = 192;
/** Smallest scratch disk, in MiB. */
export const MIN_VM_DISK_MIB = 64;

/** Checks what a VM is to be made of before anything is made; `sockets` are paths that it will have. Throws `bad_boot_spec`, `socket_path_too_long`. */
export function checkVmSpec(spec: BootSpec, sockets: readonly string[]): void {
  if (!isAbsolute(spec.folder) || spec.folder.includes('\0')) throw badSpec(spec, `${JSON.stringify(spec.folder)} is no absolute path`);
  if (!/^[A-Za-z0-9_.:/-]{8,200}$/.test(spec.attemptMarker))
    throw badSpec(spec, 'the attempt marker has another form than 8 to 200 plain characters');
  const { memoryMib, diskMib } = spec.limits;
  if (memoryMib < MIN_VM_MEMORY_MIB) throw badSpec(spec, `${memoryMib} MiB of memory are less than ${MIN_VM_MEMORY_MIB}`);
  if (diskMib < MIN_VM_DISK_MIB) throw badSpec(spec, `${diskMib} MiB of disk are less than ${MIN_VM_DISK_MIB}`);
  const length = Math.max(...sockets.map((path) => Buffer.byteLength(path)));
  if (length > MAX_SOCKET_PATH_BYTES) {
    throw new CodedError(
      'socket_path_too_long',
      `The socket path of VM ${spec.vmId} has ${length} bytes; Linux allows ${MAX_SOCKET_PATH_BYTES}.`,
      {
        id: spec.vmId,
        action: 'Use a shorter home or runtime folder.',
      },
    );
  }
}

/** Error of a spec that no VM can be made of. */
export function badSpec(spec: BootSpec, why: string): CodedError {
  return new CodedError('bad_boot_spec', `VM ${spec.vmId} cannot be made: ${why}.`, {
    id: spec.vmId,
    action: 'Correct what the VM is made of; trying again gives the same.',
  });
}
