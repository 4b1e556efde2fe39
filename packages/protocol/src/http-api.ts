import * as z from 'zod';
import { deliverySchema, missionEndSchema, missionStateSchema, phaseStateSchema } from './mission-event.ts';
import { outcomeSchema } from './outcome.ts';
import { policyWarningSchema } from './policy-view.ts';
import { seatRefSchema } from './seats.ts';
import {
  addressRulesSchema,
  allowListSchema,
  artifactIdSchema,
  attemptSchema,
  commandSchema,
  countSchema,
  digestSchema,
  driverSchema,
  durationMsSchema,
  fileNameSchema,
  gitShaSchema,
  layerFilesSchema,
  MAX_AGENT_FILES,
  MAX_PHASES,
  missionIdSchema,
  nodeIdSchema,
  phaseIdSchema,
  phaseKindSchema,
  runIdSchema,
  taskSchema,
  timeSchema,
  turnIdSchema,
} from './values.ts';

/** Bytes of one upload. */
export const MAX_UPLOAD_BYTES = 8 * 1024 * 1024 * 1024;
/** Bytes of a JSON body. */
export const MAX_JSON_BODY_BYTES = 64 * 1024 * 1024;

/** A path as bytes: each character is one byte (latin1), since file names need not be UTF-8. */
export const bytePathSchema = z.string().min(1).max(4096);

/** Where the tree of a mission comes from. A server never opens a client's path. */
export const repositorySourceSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('upload'),
    pack: digestSchema.describe('Uploaded pack that holds HEAD and its history.'),
    shallow: z.array(gitShaSchema).max(100_000).describe('Commits of the `shallow` file; empty for a full clone.'),
    head: gitShaSchema,
    branch: z.string().max(250).nullable().describe('Branch of HEAD, null where detached.'),
    snapshot: digestSchema.describe('Uploaded canonical snapshot blob of the files that travel.'),
    snapshotId: digestSchema,
    dirty: z.boolean().describe('The snapshot differs from HEAD: the base becomes a synthetic commit of the caller.'),
    changed: z.array(bytePathSchema).max(500_000).default([]).describe('Paths whose content differs from HEAD; empty for a clean tree.'),
    removed: z.array(bytePathSchema).max(500_000).default([]).describe('Tracked paths that are gone; empty for a clean tree.'),
    author: z.strictObject({ name: z.string().max(200), email: z.string().max(200) }).nullable(),
    includedSecrets: z.array(z.string()).max(1000),
  }),
  z.strictObject({
    kind: z.literal('url'),
    url: z.string().max(2000),
    branch: z.string().max(250).nullable().describe('Branch to start from, null for the default branch.'),
    push: z.boolean().describe('Push the delivered branch to the same URL.'),
  }),
  z.strictObject({ kind: z.literal('none') }),
]);
export type RepositorySource = z.infer<typeof repositorySourceSchema>;

export const phaseRequestSchema = z.strictObject({
  kind: phaseKindSchema,
  task: taskSchema,
  setup: commandSchema.optional().describe('Command run before the agent and before each check.'),
  doneWhenCheck: commandSchema.optional().describe('Shell command that must exit 0.'),
  allowEmpty: z.boolean().default(false),
});

/** What a mission asks to reach. */
export const egressRequestSchema = z.strictObject({
  allow: allowListSchema.default([]),
  setupAllow: allowListSchema.default([]),
  addressRules: addressRulesSchema
    .default([])
    .describe('Hosts of the above whose addresses need not be public; an operator alone may send any.'),
  strict: z
    .boolean()
    .optional()
    .describe('Refuse the mission where the policy leaves out any of it (`policy_above_ceiling`); absent: it is told as a warning.'),
});

/** A run that learns what a mission needs. */
export const learnRequestSchema = z.strictObject({
  withCredentials: z
    .boolean()
    .default(false)
    .describe('Let it have what it is refused otherwise: the model route, a seat, included secrets.'),
});

export const createMissionSchema = z.strictObject({
  title: z.string().trim().min(1).max(200),
  repository: repositorySourceSchema,
  phases: z.array(phaseRequestSchema).min(1).max(MAX_PHASES),
  agent: z.strictObject({
    backend: z.string().min(1).max(64).default('command'),
    command: commandSchema,
    files: z
      .array(z.strictObject({ name: fileNameSchema, digest: digestSchema, bytes: countSchema }))
      .max(MAX_AGENT_FILES)
      .default([]),
  }),
  egress: egressRequestSchema.default({ allow: [], setupAllow: [], addressRules: [] }),
  driver: driverSchema.optional(),
  allowUnisolated: z.boolean().default(false),
  needsModelRoute: z
    .boolean()
    .optional()
    .describe('True keeps the mission to nodes that have a model route for its backend; it waits while there is none.'),
  gate: z
    .strictObject({
      mode: z.enum(['fresh-vm', 'same-vm']).default('fresh-vm'),
      protect: z.array(z.string().min(1).max(300)).max(100).default([]),
    })
    .default({ mode: 'fresh-vm', protect: [] }),
  turnTimeoutMs: durationMsSchema.optional(),
  checkTimeoutMs: durationMsSchema.optional(),
  setupTimeoutMs: durationMsSchema.optional(),
  learn: learnRequestSchema
    .optional()
    .describe(
      'All that the policy opens to learning runs may be reached, what is delivered waits for an approval; absent: an ordinary run.',
    ),
  setupLayerFiles: layerFilesSchema
    .optional()
    .describe(
      'Files of the tree that the set-up reads, and no others: what it makes of them is kept as a layer. Absent: the set-up runs in each VM.',
    ),
});
export type CreateMission = z.infer<typeof createMissionSchema>;
export type CreateMissionInput = z.input<typeof createMissionSchema>;

/** The part of a mission that the policy judges, asked about before anything is sent. */
export const askPolicySchema = z.strictObject({
  backend: z.string().min(1).max(64).default('command'),
  egress: egressRequestSchema,
  learn: learnRequestSchema.optional(),
});
export type AskPolicyInput = z.input<typeof askPolicySchema>;

export const errorBodySchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), action: z.string().optional(), id: z.string().optional() }),
});
export type ErrorBody = z.infer<typeof errorBodySchema>;

export const uploadReplySchema = z.object({ digest: digestSchema, bytes: countSchema });

export const attemptViewSchema = z.object({
  runId: runIdSchema.optional().describe('Run of its turn; absent: the server is one that does not say.'),
  turnId: turnIdSchema,
  attempt: attemptSchema,
  nodeId: nodeIdSchema.nullable(),
  state: z.string(),
  outcome: outcomeSchema.nullable(),
  detail: z.string(),
  startedAt: timeSchema.nullable(),
  endedAt: timeSchema.nullable(),
});

export const phaseViewSchema = z.object({
  id: phaseIdSchema,
  position: countSchema,
  kind: phaseKindSchema,
  task: z.string(),
  state: phaseStateSchema,
  iteration: z.int(),
  outcome: outcomeSchema.nullable(),
  delivery: deliverySchema.nullable(),
  attempts: z.array(attemptViewSchema),
});

export const missionSummarySchema = z.object({
  id: missionIdSchema,
  title: z.string(),
  state: missionStateSchema,
  createdAt: timeSchema,
  endedAt: timeSchema.nullable(),
  branch: z.string().nullable(),
  outcome: outcomeSchema.nullable(),
  learning: learnRequestSchema.optional().describe('Of a learning run; absent: it is none.'),
  seat: seatRefSchema.nullable().optional().describe('Seat it works under; null or absent: the caller of the workspace itself.'),
});
export type MissionSummary = z.infer<typeof missionSummarySchema>;

export const missionViewSchema = missionSummarySchema.extend({
  version: countSchema,
  baseCommit: gitShaSchema.nullable(),
  baseSynthetic: z.boolean(),
  repository: z.enum(['upload', 'url', 'none']),
  phases: z.array(phaseViewSchema),
  waiting: z.string().nullable().describe('What a waiting turn waits for.'),
  end: missionEndSchema.nullable(),
  warnings: z.array(policyWarningSchema).optional().describe('What it asks for and the policy left out when it was created.'),
});
export type MissionView = z.infer<typeof missionViewSchema>;

export const artifactViewSchema = z.object({
  id: artifactIdSchema,
  phaseId: phaseIdSchema,
  turnId: turnIdSchema.nullable(),
  attempt: attemptSchema.nullable(),
  name: z.string(),
  kind: z.enum(['patch', 'names', 'diffstat', 'document', 'log', 'record', 'tree', 'egress']),
  mime: z.string(),
  bytes: countSchema,
  digest: digestSchema,
  truncated: z.boolean(),
});
export type ArtifactView = z.infer<typeof artifactViewSchema>;

/** One piece of an attempt's log on the log stream; `offset` is where it begins, `data` is base64. */
export const logChunkSchema = z.object({ turnId: turnIdSchema, attempt: attemptSchema, offset: countSchema, data: z.string() });
export type LogChunk = z.infer<typeof logChunkSchema>;

export const serverInfoSchema = z.object({
  version: z.string(),
  generation: z.int(),
  minGeneration: z.int(),
  homeId: z.string(),
  epoch: z.int(),
});
export type ServerInfo = z.infer<typeof serverInfoSchema>;

export const joinTokenReplySchema = z.object({ token: z.string(), expiresAt: timeSchema });
export const joinRequestSchema = z.strictObject({
  token: z.string().min(1).max(200),
  name: z.string().min(1).max(100),
  publicKey: z.string().max(200).describe('Ed25519 public key, SPKI DER, base64.'),
});
export const joinReplySchema = z.object({ nodeId: nodeIdSchema });

export const retryRequestSchema = z.strictObject({ phaseId: phaseIdSchema.optional() });
export const retryReplySchema = z.object({ phaseId: phaseIdSchema, reopened: countSchema });
export const approveRequestSchema = z.strictObject({ phaseId: phaseIdSchema.optional() });
export const healthzSchema = z.object({ ok: z.boolean(), homeId: z.string(), checks: z.record(z.string(), z.string()) });

/** Paths of the HTTP API, relative to the server's URL. */
export const apiPaths = {
  healthz: '/healthz',
  readyz: '/readyz',
  metrics: '/metrics',
  info: '/v1/info',
  uploads: '/v1/uploads',
  missions: '/v1/missions',
  mission: (id: string) => `/v1/missions/${id}`,
  cancel: (id: string) => `/v1/missions/${id}/cancel`,
  retry: (id: string) => `/v1/missions/${id}/retry`,
  approve: (id: string) => `/v1/missions/${id}/approve`,
  events: (id: string) => `/v1/missions/${id}/events`,
  logs: (id: string) => `/v1/missions/${id}/logs`,
  pack: (id: string) => `/v1/missions/${id}/pack`,
  artifacts: (id: string) => `/v1/missions/${id}/artifacts`,
  artifact: (id: string, artifactId: string) => `/v1/missions/${id}/artifacts/${artifactId}`,
  archive: (id: string) => `/v1/missions/${id}/archive`,
  askPolicy: '/v1/policy/ask',
  policy: (id: string) => `/v1/missions/${id}/policy`,
  policyCheck: (id: string) => `/v1/missions/${id}/policy/check`,
  fleet: '/v1/fleet',
  backends: '/v1/backends',
  joinTokens: '/v1/join-tokens',
} as const;
