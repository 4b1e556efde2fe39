import { join } from 'node:path';

/** Port of the host that the guest dials. Short: it is the end of a socket's path, which may have 107 bytes. */
export const LINK_VSOCK_PORT = 52;

/** What one Firecracker finds in its folder. Names are short for the same reason. */
export const RUN_NAMES = {
  api: 'a',
  vsock: 'v',
  console: 'console',
  log: 'log',
  metrics: 'metrics',
  kernel: 'kernel',
  initrd: 'initrd',
  base: 'base',
  payload: 'payload',
  layer: 'layer',
  scratch: 'scratch',
} as const;
export type RunName = keyof typeof RUN_NAMES;

/** Host paths of one Firecracker in its VM's folder. */
export interface RunPlaces {
  /** The folder that it works in; under the jailer a link to the root of its jail, since that path is too long for a socket. */
  readonly folder: string;
  readonly apiSocket: string;
  /** The host listens here; Firecracker connects to it for each dial of the guest. */
  readonly linkSocket: string;
}

/** The places of a VM's Firecracker, or of the second one that reads the disk of the first. */
export function runPlaces(vmFolder: string, rescue: boolean): RunPlaces {
  const folder = join(vmFolder, rescue ? 'r' : 'm');
  return {
    folder,
    apiSocket: join(folder, RUN_NAMES.api),
    linkSocket: join(folder, `${RUN_NAMES.vsock}_${LINK_VSOCK_PORT}`),
  };
}
