import { readFile } from 'node:fs/promises';
import { egressProxySettingsSchema, modelRoutesSchema } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import { DISK_RESERVE_MIB } from '@firecrew/placement';
import { nodeIdSchema } from '@firecrew/protocol';
import * as z from 'zod';
import { firecrackerConfigSchema } from '../vm/firecracker-settings.ts';
import { layerConfigSchema } from '../vm/layer-settings.ts';
import { qemuConfigSchema } from '../vm/qemu-settings.ts';

/** Configuration of a node agent; unknown keys are refused. */
export const nodeConfigSchema = z.strictObject({
  home: z.string().startsWith('/').describe("The node's own folder: turn folders and versions."),
  serverFile: z.string().startsWith('/').optional().describe('`server.json` of a server on this machine, read again at each connect.'),
  serverUrl: z.url().optional().describe('URL of a server elsewhere; one of the two is given.'),
  nodeId: nodeIdSchema,
  keyFile: z.string().startsWith('/').describe('Ed25519 private key, PKCS8 PEM.'),
  callerPath: z.string().describe('PATH whose programs attempts of the process driver may use.'),
  owners: z
    .strictObject({ firstUid: z.int().min(1000), count: z.int().min(1) })
    .nullable()
    .default(null)
    .describe('Range of user ids for attempts when this agent runs as root.'),
  bubblewrap: z.enum(['auto', 'off']).default('auto').describe('`off` runs attempts of the process driver without isolation.'),
  qemu: qemuConfigSchema.nullable().default(null).describe('What VMs are made of; null where this node boots none.'),
  firecracker: firecrackerConfigSchema.nullable().default(null).describe('What microVMs are made of; null where this node boots none.'),
  imageFetch: z
    .strictObject({
      enabled: z.boolean().default(true).describe('Whether what VMs are made of is fetched from the server where the store lacks it.'),
      diskReserveMib: z.int().min(0).default(DISK_RESERVE_MIB).describe('Room on the disk of the store that fetching leaves free.'),
    })
    .prefault({}),
  setupLayers: layerConfigSchema.nullable().prefault({}).describe('Bounds of set-ups that are kept as layers; null keeps none.'),
  modelRoutes: modelRoutesSchema.default({}).describe('Where model calls of guests go, by the name of their backend.'),
  egressProxy: egressProxySettingsSchema
    .nullable()
    .default(null)
    .describe("The operator's own proxy, through which tunnels of guests and model calls leave; null dials directly."),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error']).default('info'),
  allowHttp: z.boolean().default(false).describe('Allow a server URL without TLS, on loopback only.'),
});
export type NodeConfig = z.infer<typeof nodeConfigSchema>;

/** Reads and checks the configuration file. Throws `config_unreadable` or `config_invalid`. */
export async function readNodeConfig(file: string): Promise<NodeConfig> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new CodedError('config_unreadable', `the configuration ${file} cannot be read: ${messageOf(cause)}`, { cause });
  }
  const parsed = nodeConfigSchema.safeParse(value);
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => `${issue.path.map(String).join('.')}: ${issue.message}`).join('; ');
    throw new CodedError('config_invalid', `the configuration ${file} is not valid: ${where}`);
  }
  if ((parsed.data.serverFile === undefined) === (parsed.data.serverUrl === undefined)) {
    throw new CodedError('config_invalid', `the configuration ${file} must name either serverFile or serverUrl`);
  }
  return parsed.data;
}
