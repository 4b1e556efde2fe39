import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { BootSpec } from '@firecrew/vmm';

/** What a test orders of a VM: nothing of the host is bound, and streams of the guest are left alone. Its folder is `vmId` below `folder`. */
export function vmSpec(vmId: string, folder: string, limits: BootSpec['limits']): BootSpec {
  return {
    vmId,
    folder: join(folder, vmId),
    guestAgent: { node: '/unused', bundle: '/unused' },
    bindPaths: [],
    path: '/bin',
    caBundle: null,
    limits,
    allowUnisolated: false,
    attemptMarker: randomUUID(),
    onStream: () => undefined,
    onRefused: () => undefined,
  };
}
