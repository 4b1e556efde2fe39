import { type BootArtifacts, openBootFiles } from '@firecrew/rootfs';
import { QemuDriver, type VmUsers } from '@firecrew/vmm';
import * as z from 'zod';
import { bootReferenceKeys } from './boot-references.ts';

const path = z.string().startsWith('/');
const artifactId = z.string().regex(/^sha256:[0-9a-f]{64}$/);

const cgroupSchema = z.strictObject({
  parent: z
    .string()
    .max(200)
    .regex(
      /^(?!\.{1,2}(\/|$))[A-Za-z0-9_.@:-]+(\/(?!\.{1,2}(\/|$))[A-Za-z0-9_.@:-]+)*$/,
      'must be a plain path below the root of cgroup v2',
    )
    .optional()
    .describe('Group in which each VM gets its own; default: that of the node agent.'),
  required: z.boolean().optional().describe('Boot nothing where a limit cannot be set.'),
});

const common = {
  accelerator: z.enum(['kvm', 'hvf', 'tcg']).describe('How the guest runs; there is no fall-back between them.'),
  machine: z.enum(['q35', 'microvm']).default('q35'),
  program: path.optional().describe('The emulator; default: the one in /usr/bin for this processor.'),
  cpus: z.int().min(1).max(32).default(1),
  bootTimeoutMs: z.int().min(1000).max(600_000).default(90_000),
  store: path.describe('Root of the image store.'),
  cgroup: cgroupSchema.optional().describe('Limits of VMs by cgroup v2; without it they are set where they can be.'),
};

/** QEMU on this host, as the node's configuration says it; unknown keys are refused. */
export const qemuConfigSchema = z.strictObject({
  ...common,
  ...bootReferenceKeys,
});

/** What the VMs of one attempt are made of, as a shim's launch file says it: names may lead elsewhere later. */
export const qemuLaunchSchema = z.strictObject({
  ...common,
  artifacts: z.strictObject({ kernel: artifactId, payload: artifactId, image: artifactId }),
});
export type QemuConfig = z.infer<typeof qemuConfigSchema>;
export type QemuLaunch = z.infer<typeof qemuLaunchSchema>;

/** The launch settings of one attempt. */
export function qemuLaunchOf(
  { kernel: _kernel, payload: _payload, image: _image, ...settings }: QemuConfig,
  artifacts: BootArtifacts,
): QemuLaunch {
  return { ...settings, artifacts };
}

/**
 * The driver of these settings; `probeBoot` is for the one process of the host that finds out whether VMs boot here, and the VM of that boot has
 * one of `probeUsers`, or runs as this process.
 */
export function qemuDriverOf(
  { program, store, artifacts, cgroup, ...settings }: QemuLaunch,
  probeBoot: boolean,
  probeUsers?: Pick<VmUsers, 'take'>,
): QemuDriver {
  return new QemuDriver({
    ...settings,
    probeBoot,
    openFiles: () => openBootFiles(store, artifacts),
    ...(program === undefined ? {} : { program }),
    ...(cgroup === undefined ? {} : { cgroup }),
    ...(probeUsers === undefined ? {} : { probeUsers }),
  });
}
