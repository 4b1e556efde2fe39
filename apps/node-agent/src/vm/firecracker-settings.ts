import { type BootArtifacts, openBootFiles } from '@firecrew/rootfs';
import { FirecrackerDriver } from '@firecrew/vmm';
import * as z from 'zod';
import { bootReferenceKeys } from './boot-references.ts';

const path = z.string().startsWith('/');
const artifactId = z.string().regex(/^sha256:[0-9a-f]{64}$/);

const bucketSchema = z.strictObject({
  size: z.int().min(1).describe('Bytes, or operations.'),
  refillMs: z.int().min(1).describe('Time in which they come back, in `ms`.'),
  burst: z.int().min(0).optional().describe('More that are there once.'),
});

const jailerSchema = z.strictObject({
  program: path.default('/usr/local/bin/jailer'),
  parentCgroup: z
    .string()
    .regex(/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/, 'must be a plain path below the root of cgroup v2')
    .optional(),
  cgroup: z
    .array(z.string().regex(/^[a-z]+(\.[a-z_]+)+=[^=\n]+$/, 'must be FILE=VALUE'))
    .max(32)
    .optional()
    .describe('Further files of the group of each VM.'),
  networkNamespace: path.optional().describe('Network namespace without interfaces.'),
  processNamespace: z.boolean().optional(),
  daemonize: z.boolean().optional(),
});

const common = {
  program: path.default('/usr/local/bin/firecracker'),
  jailer: jailerSchema.nullable().prefault({}).describe('Confinement of every VM; null runs Firecracker as the user of the VM alone.'),
  cpus: z.int().min(1).max(32).default(1),
  bootTimeoutMs: z.int().min(1000).max(600_000).default(30_000),
  diskLimits: z
    .strictObject({ bandwidth: bucketSchema.optional(), operations: bucketSchema.optional() })
    .optional()
    .describe('Limits of the scratch disk.'),
  store: path.describe('Root of the image store.'),
};

/** Firecracker on this host, as the node's configuration says it; unknown keys are refused. */
export const firecrackerConfigSchema = z.strictObject({
  ...common,
  ...bootReferenceKeys,
});

/** What the VMs of one attempt are made of, as a shim's launch file says it: names may lead elsewhere later. */
export const firecrackerLaunchSchema = z.strictObject({
  ...common,
  artifacts: z.strictObject({ kernel: artifactId, payload: artifactId, image: artifactId }),
});
export type FirecrackerConfig = z.infer<typeof firecrackerConfigSchema>;
export type FirecrackerLaunch = z.infer<typeof firecrackerLaunchSchema>;

/** The launch settings of one attempt. */
export function firecrackerLaunchOf(
  { kernel: _kernel, payload: _payload, image: _image, ...settings }: FirecrackerConfig,
  artifacts: BootArtifacts,
): FirecrackerLaunch {
  return { ...settings, artifacts };
}

/**
 * The driver of these settings. `vmRoot` is the folder that VMs are made in, for the one process of the host that finds out whether
 * they can be. Throws `bad_rate_limit`.
 */
export function firecrackerDriverOf(
  { store, artifacts, jailer, diskLimits, ...settings }: FirecrackerLaunch,
  vmRoot?: string,
): FirecrackerDriver {
  return new FirecrackerDriver({
    ...settings,
    openFiles: () => openBootFiles(store, artifacts),
    probeFiles: vmRoot !== undefined,
    ...(vmRoot === undefined ? {} : { vmRoot }),
    ...(jailer === null ? {} : { jailer }),
    ...(diskLimits === undefined ? {} : { diskLimits }),
  });
}
