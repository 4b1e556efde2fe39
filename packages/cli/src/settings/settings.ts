import { resolve } from 'node:path';
import { egressProxySettingsSchema, MAX_BACKENDS, modelRoutesSchema } from '@firecrew/backend';
import { CodedError } from '@firecrew/base';
import { addressRulesSchema, allowListSchema, driverSchema, durationMsSchema, imageReferenceSchema } from '@firecrew/protocol';
import * as z from 'zod';

/** How long services that `run` started go on after their last use, in ms. */
export const IDLE_STOP_MS = 30 * 60 * 1000;

const bootKeys = {
  kernel: imageReferenceSchema.optional(),
  payload: imageReferenceSchema.optional(),
  image: imageReferenceSchema.optional(),
};

const qemuSchema = z.strictObject({
  accelerator: z.enum(['kvm', 'hvf', 'tcg']).optional(),
  machine: z.enum(['q35', 'microvm']).optional(),
  program: z.string().startsWith('/').optional(),
  cpus: z.int().min(1).max(32).optional(),
  bootTimeoutMs: z.int().min(1000).max(600_000).optional(),
  ...bootKeys,
  cgroup: z.strictObject({ parent: z.string().min(1).max(200).optional(), required: z.boolean().optional() }).optional(),
});

const bucketSchema = z.strictObject({ size: z.int().min(1), refillMs: z.int().min(100), burst: z.int().min(0).optional() });

const jailerSchema = z.strictObject({
  program: z.string().startsWith('/').optional(),
  parentCgroup: z.string().min(1).max(200).optional(),
  cgroup: z.array(z.string().min(1).max(200)).max(32).optional(),
  networkNamespace: z.string().startsWith('/').optional(),
  processNamespace: z.boolean().optional(),
  daemonize: z.boolean().optional(),
});

const firecrackerSchema = z.strictObject({
  program: z.string().startsWith('/').optional(),
  jailer: jailerSchema.nullable().optional(),
  cpus: z.int().min(1).max(32).optional(),
  bootTimeoutMs: z.int().min(1000).max(600_000).optional(),
  diskLimits: z.strictObject({ bandwidth: bucketSchema.optional(), operations: bucketSchema.optional() }).optional(),
  ...bootKeys,
});

const setupLayersSchema = z.strictObject({
  maxMib: z.int().min(1).optional(),
  reserveMib: z.int().min(0).optional(),
  unusedDays: z.number().positive().max(3650).optional(),
});

const limitsSchema = z.strictObject({
  turnTimeoutMs: durationMsSchema.optional(),
  checkTimeoutMs: durationMsSchema.optional(),
  setupTimeoutMs: durationMsSchema.optional(),
  checkpointEveryMs: durationMsSchema.optional(),
  logBytes: z.int().min(1024).optional(),
  uploadBytes: z.int().min(1024).optional(),
});

/** `config.json` of a home; unknown keys are refused, what is left out has its default. */
export const settingsSchema = z.strictObject({
  lease: z.strictObject({ ttlMs: durationMsSchema.optional(), renewEveryMs: durationMsSchema.optional() }).optional(),
  driverFloor: driverSchema.optional(),
  ceiling: allowListSchema.nullable().optional(),
  policyFile: z.string().startsWith('/', 'must be an absolute path').nullable().optional(),
  git: z
    .strictObject({
      caFile: z.string().startsWith('/').nullable().optional(),
      addressRules: addressRulesSchema.optional(),
      credentials: z.array(z.strictObject({ host: z.string(), username: z.string(), passwordFile: z.string().startsWith('/') })).optional(),
    })
    .optional(),
  limits: limitsSchema.optional(),
  databaseUrl: z
    .string()
    .regex(/^(postgres(ql)?:\/\/|own$)/, 'must be a postgresql:// URL, or own')
    .optional(),
  listen: z.strictObject({ host: z.string().min(1), port: z.int().min(0).max(65_535) }).optional(),
  hostNames: z.array(z.string().min(1).max(253)).max(32).optional(),
  idleStopMs: durationMsSchema.optional(),
  bubblewrap: z.enum(['auto', 'off']).optional(),
  qemu: qemuSchema.optional(),
  firecracker: firecrackerSchema.optional(),
  imageFetch: z.strictObject({ enabled: z.boolean().optional(), diskReserveMib: z.int().min(0).optional() }).optional(),
  setupLayers: setupLayersSchema.nullable().optional(),
  backends: z.array(z.string().startsWith('/', 'must be an absolute path').max(4096)).max(MAX_BACKENDS).optional(),
  modelRoutes: modelRoutesSchema.optional(),
  egressProxy: egressProxySettingsSchema.nullable().optional(),
  seatIssuer: z.string().startsWith('/', 'must be an absolute path').nullable().optional(),
  keyStore: z.enum(['files', 'keychain']).optional(),
  seatFallback: z.enum(['never', 'missing_key', 'always']).optional(),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error']).optional(),
});
export type Settings = z.infer<typeof settingsSchema>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that set one number each, in `ms` or `bytes`. */
const NUMBERS: Readonly<Record<string, readonly [section: 'lease' | 'limits', key: string] | readonly ['idleStopMs']>> = {
  FIRECREW_LEASE_TTL_MS: ['lease', 'ttlMs'],
  FIRECREW_LEASE_RENEW_EVERY_MS: ['lease', 'renewEveryMs'],
  FIRECREW_TURN_TIMEOUT_MS: ['limits', 'turnTimeoutMs'],
  FIRECREW_CHECK_TIMEOUT_MS: ['limits', 'checkTimeoutMs'],
  FIRECREW_SETUP_TIMEOUT_MS: ['limits', 'setupTimeoutMs'],
  FIRECREW_CHECKPOINT_EVERY_MS: ['limits', 'checkpointEveryMs'],
  FIRECREW_LOG_BYTES: ['limits', 'logBytes'],
  FIRECREW_UPLOAD_BYTES: ['limits', 'uploadBytes'],
  FIRECREW_IDLE_STOP_MS: ['idleStopMs'],
};

/** Every variable that sets a setting, for the documentation and its test. */
export const SETTING_VARIABLES: readonly string[] = [
  ...Object.keys(NUMBERS),
  'FIRECREW_DRIVER_FLOOR',
  'FIRECREW_BACKENDS',
  'FIRECREW_CEILING',
  'FIRECREW_POLICY_FILE',
  'FIRECREW_DATABASE_URL',
  'FIRECREW_LISTEN',
  'FIRECREW_HOST_NAMES',
  'FIRECREW_GIT_CA_FILE',
  'FIRECREW_BUBBLEWRAP',
  'FIRECREW_QEMU_ACCELERATOR',
  'FIRECREW_QEMU_IMAGE',
  'FIRECREW_FIRECRACKER_PROGRAM',
  'FIRECREW_FIRECRACKER_IMAGE',
  'FIRECREW_KEY_STORE',
  'FIRECREW_SEAT_ISSUER',
  'FIRECREW_LOG_LEVEL',
];

/** `HOST:PORT`, with an IPv6 address in brackets. */
export function parseListen(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  return host === undefined ? undefined : { host, port: Number(match?.[3]) };
}

/** What the environment sets; an empty variable sets nothing. Unchecked: `mergeSettings` checks the whole. */
export function settingsOfEnvironment(env: Environment): Record<string, unknown> {
  const set = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const sections: Record<'lease' | 'limits', Record<string, unknown>> = { lease: {}, limits: {} };
  const found: Record<string, unknown> = {};
  for (const [name, place] of Object.entries(NUMBERS)) {
    const text = set(name);
    if (text === undefined) continue;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : text;
    if (place[0] === 'idleStopMs') found.idleStopMs = value;
    else sections[place[0]][place[1]] = value;
  }
  for (const [key, section] of Object.entries(sections)) if (Object.keys(section).length > 0) found[key] = section;
  const plain = {
    driverFloor: set('FIRECREW_DRIVER_FLOOR'),
    databaseUrl: set('FIRECREW_DATABASE_URL'),
    logLevel: set('FIRECREW_LOG_LEVEL'),
    bubblewrap: set('FIRECREW_BUBBLEWRAP'),
    keyStore: set('FIRECREW_KEY_STORE'),
    seatIssuer: set('FIRECREW_SEAT_ISSUER'),
    policyFile: set('FIRECREW_POLICY_FILE'),
  };
  for (const [key, value] of Object.entries(plain)) if (value !== undefined) found[key] = value;
  const ceiling = set('FIRECREW_CEILING');
  if (ceiling !== undefined) found.ceiling = ceiling.split(',').map((entry) => entry.trim());
  const backends = set('FIRECREW_BACKENDS');
  if (backends !== undefined) found.backends = backends.split(',').map((file) => file.trim());
  const hostNames = set('FIRECREW_HOST_NAMES');
  if (hostNames !== undefined) found.hostNames = hostNames.split(',').map((name) => name.trim());
  const listen = set('FIRECREW_LISTEN');
  if (listen !== undefined) found.listen = parseListen(listen) ?? listen;
  const accelerator = set('FIRECREW_QEMU_ACCELERATOR');
  const image = set('FIRECREW_QEMU_IMAGE');
  if (accelerator !== undefined || image !== undefined) found.qemu = { accelerator, image };
  const [program, microImage] = [set('FIRECREW_FIRECRACKER_PROGRAM'), set('FIRECREW_FIRECRACKER_IMAGE')];
  if (program !== undefined || microImage !== undefined) found.firecracker = { program, image: microImage };
  const caFile = set('FIRECREW_GIT_CA_FILE');
  if (caFile !== undefined) found.git = { caFile };
  return found;
}

/** File < environment < flags, key by key; the sections are merged, lists are replaced. Throws `settings_invalid`. */
export function mergeSettings(sources: readonly { readonly name: string; readonly value: unknown }[]): Settings {
  let merged: Settings = {};
  for (const { name, value } of sources) {
    const parsed = settingsSchema.safeParse(value);
    if (!parsed.success) {
      const where = parsed.error.issues.map((issue) => `${issue.path.map(String).join('.') || '(top)'}: ${issue.message}`).join('; ');
      throw new CodedError('settings_invalid', `the settings of ${name} are not valid: ${where}`, {
        id: name,
        action: 'Correct them; docs/cli.md lists every key.',
      });
    }
    const { lease, git, limits, qemu, firecracker, ...rest } = parsed.data;
    merged = {
      ...merged,
      ...rest,
      ...(lease === undefined ? {} : { lease: { ...merged.lease, ...lease } }),
      ...(git === undefined ? {} : { git: { ...merged.git, ...git } }),
      ...(limits === undefined ? {} : { limits: { ...merged.limits, ...limits } }),
      ...(qemu === undefined ? {} : { qemu: { ...merged.qemu, ...known(qemu) } }),
      ...(firecracker === undefined ? {} : { firecracker: { ...merged.firecracker, ...known(firecracker) } }),
    };
  }
  if (merged.policyFile != null && merged.ceiling != null)
    throw new CodedError(
      'settings_invalid',
      `ceiling and policyFile (${merged.policyFile}) are both set: a policy file has its own ceiling`,
      {
        id: 'ceiling',
        action: 'Write the ceiling into the policy file, or leave the file out.',
      },
    );
  return merged;
}

/** Without the keys that are there and undefined: they would hide what an earlier source set. */
function known<Value extends object>(value: Value): Partial<Value> {
  // cast: the keys are those of the value
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as Partial<Value>;
}

/** What the flags of `up` set. Unchecked: `mergeSettings` checks the whole. */
export function settingsOfFlags(flags: Readonly<Record<string, unknown>>, cwd: string): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  if (typeof flags.listen === 'string') found.listen = parseListen(flags.listen) ?? flags.listen;
  if (typeof flags.policy === 'string') found.policyFile = resolve(cwd, flags.policy);
  for (const key of ['databaseUrl', 'driverFloor']) if (flags[key] !== undefined) found[key] = flags[key];
  return found;
}
