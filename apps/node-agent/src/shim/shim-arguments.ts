import { egressProxySettingsSchema } from '@firecrew/backend';
import * as z from 'zod';
import { modelLaunchSchema } from '../model/model-launch.ts';
import { firecrackerLaunchSchema } from '../vm/firecracker-settings.ts';
import { layerLaunchSchema } from '../vm/layer-settings.ts';
import { qemuLaunchSchema } from '../vm/qemu-settings.ts';

/** Range of user ids that VMs get one of each, and the folders below which those of VMs are. */
export const vmUsersSchema = z.strictObject({
  firstUid: z.int().min(1000),
  count: z.int().min(1),
  vmRoots: z.array(z.string().startsWith('/')).min(1),
});

/** What the node agent tells a shim beside the spec: where things are on this host. Read from `launch.json` of the turn folder. */
export const shimLaunchSchema = z.strictObject({
  guestAgent: z.strictObject({ node: z.string().startsWith('/'), bundle: z.string().startsWith('/') }),
  callerPath: z.string(),
  homes: z.array(z.string()).describe('Home folders that are never bound.'),
  caBundle: z.string().startsWith('/').nullable(),
  bubblewrap: z.enum(['auto', 'off']).default('auto'),
  contract: z.array(z.string()).max(64).describe('Variables that may enter the guest although they look like secrets.'),
  users: vmUsersSchema.nullable().describe('Users of the host for VMs; null runs them as this process.'),
  qemu: qemuLaunchSchema.nullable().default(null).describe('What a VM of the qemu driver is made of.'),
  firecracker: firecrackerLaunchSchema.nullable().default(null).describe('What a VM of the firecracker driver is made of.'),
  layers: layerLaunchSchema.nullable().default(null).describe('Where set-ups are kept as layers; null where none are.'),
  model: modelLaunchSchema.nullable().default(null).describe('Where model calls of the guest go; null for nowhere.'),
  egressProxy: egressProxySettingsSchema
    .nullable()
    .default(null)
    .describe("The operator's own proxy; where its credential is, not what it is."),
  serverAddresses: z.array(z.string()).max(512).default([]).describe('Addresses of server and database, which no guest may reach.'),
  renewedAtUptimeMs: z.number().describe('When the renewal that allowed this start was sent.'),
});
export type ShimLaunch = z.infer<typeof shimLaunchSchema>;

/** Name of the launch file in a turn folder. */
export const LAUNCH_FILE = 'launch.json';
