import { QemuDriver } from '@firecrew/vmm';
import { z } from 'zod';

const path = z.string().startsWith('/');

/** What VMs of this host are made of, as the node's configuration and a shim's launch file say it; unknown keys are refused. */
export const qemuSettingsSchema = z.strictObject({
  accelerator: z.enum(['kvm', 'hvf', 'tcg']).describe('How the guest runs; there is no fall-back between them.'),
  machine: z.enum(['q35', 'microvm']).default('q35'),
  program: path.optional().describe('The emulator; default: the one in /usr/bin for this processor.'),
  cpus: z.int().min(1).max(32).default(1),
  bootTimeoutMs: z.int().min(1000).max(600_000).default(90_000),
  assets: z.strictObject({
    kernel: path,
    initrd: path,
    payload: path,
    base: path,
    path: z.string().describe('PATH that the image declares.'),
  }),
});
export type QemuSettings = z.infer<typeof qemuSettingsSchema>;

/** The driver of these settings; `probeBoot` is for the one process of the host that finds out whether VMs boot here. */
export function qemuDriverOf({ program, ...settings }: QemuSettings, probeBoot: boolean): QemuDriver {
  return new QemuDriver({ ...settings, probeBoot, ...(program === undefined ? {} : { program }) });
}
