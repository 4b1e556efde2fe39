import { readFile } from 'node:fs/promises';
import { backendsSchema, egressProxySettingsSchema } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import { addressRulesSchema, allowListSchema, driverSchema, durationMsSchema, nodeIdSchema } from '@firecrew/protocol';
import * as z from 'zod';

const GIB = 1024 * 1024 * 1024;

const serverConfigShape = z.strictObject({
  home: z.string().startsWith('/').describe("The server's own folder: blobs and repositories."),
  homeId: z.string().min(1).describe('Identity of the installation; a `server.json` is valid only with it.'),
  serverFile: z.string().startsWith('/').describe('Where the address of the running server is written.'),
  listen: z.strictObject({ host: z.string(), port: z.int().min(0).max(65_535) }),
  database: z.union([
    z.strictObject({ connectionString: z.string() }),
    z.strictObject({ host: z.string(), port: z.int(), user: z.string(), password: z.string(), database: z.string() }),
  ]),
  operatorToken: z.string().min(32).describe('Token of the local operator; stored hashed.'),
  localNode: z.strictObject({ id: nodeIdSchema, name: z.string(), publicKey: z.string() }).nullable(),
  hostNames: z
    .array(z.string().min(1).max(253))
    .max(32)
    .default([])
    .describe('Names under which a proxy in front asks for this server, besides addresses and `localhost`.'),
  backends: backendsSchema.default([]).describe('Manifests of backends beside the builtin ones.'),
  driverFloor: driverSchema.default('process').describe('The weakest driver that a client may ask for.'),
  ceiling: allowListSchema.nullable().default(null).describe("The operator's egress ceiling; null sets none, an empty list denies all."),
  policyFile: z
    .string()
    .startsWith('/')
    .nullable()
    .default(null)
    .describe("The operator's egress policy (`firecrew.policy.yaml`); null lets missions ask for anything below `ceiling`."),
  lease: z.strictObject({ ttlMs: durationMsSchema, renewEveryMs: durationMsSchema }).default({ ttlMs: 300_000, renewEveryMs: 20_000 }),
  limits: z
    .strictObject({
      turnTimeoutMs: durationMsSchema.default(3_600_000),
      checkTimeoutMs: durationMsSchema.default(900_000),
      setupTimeoutMs: durationMsSchema.default(900_000),
      checkpointEveryMs: durationMsSchema.default(300_000),
      logBytes: z
        .int()
        .min(1024)
        .default(64 * 1024 * 1024),
      uploadBytes: z
        .int()
        .min(1024)
        .default(8 * GIB),
    })
    .prefault({}),
  git: z
    .strictObject({
      caFile: z.string().startsWith('/').nullable().default(null).describe('CA bundle for https remotes, besides the system default.'),
      addressRules: addressRulesSchema.default([]).describe('Git hosts whose addresses need not be public.'),
      credentials: z
        .array(z.strictObject({ host: z.string(), username: z.string(), passwordFile: z.string().startsWith('/') }))
        .default([]),
    })
    .prefault({}),
  egressProxy: egressProxySettingsSchema
    .nullable()
    .default(null)
    .describe("The operator's own proxy, through which git reaches https remotes; null dials directly."),
  images: z
    .string()
    .startsWith('/')
    .nullable()
    .default(null)
    .describe('Root of the image store whose artifacts nodes may fetch; null offers none.'),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error']).default('info'),
});
/** Configuration of a server; unknown keys are refused. Paths are absolute. */
export const serverConfigSchema = serverConfigShape.refine((config) => config.ceiling === null || config.policyFile === null, {
  path: ['ceiling'],
  message: 'a policy file has its own ceiling; write it there',
});
export type ServerConfig = z.infer<typeof serverConfigSchema>;

/** Reads and checks the configuration file. Throws `config_unreadable` or `config_invalid`. */
export async function readServerConfig(file: string): Promise<ServerConfig> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new CodedError('config_unreadable', `the configuration ${file} cannot be read: ${messageOf(cause)}`, { cause });
  }
  const parsed = serverConfigSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues.map((issue) => `${issue.path.map(String).join('.')}: ${issue.message}`).join('; ');
  throw new CodedError('config_invalid', `the configuration ${file} is not valid: ${where}`);
}
