import * as z from 'zod';
import {
  addressRulesSchema,
  allowListSchema,
  attemptSchema,
  commandSchema,
  countSchema,
  digestSchema,
  driverSchema,
  durationMsSchema,
  egressBudgetsSchema,
  epochSchema,
  fileNameSchema,
  gitShaSchema,
  layerFilesSchema,
  MAX_AGENT_FILES,
  missionIdSchema,
  nodeIdSchema,
  phaseIdSchema,
  phaseKindSchema,
  runIdSchema,
  taskSchema,
  turnIdSchema,
  workspaceIdSchema,
} from './values.ts';

/** A blob the node fetches before the attempt starts. */
export const inputBlobSchema = z.strictObject({ digest: digestSchema, bytes: countSchema });

export const ignoreFileSchema = z.strictObject({
  dir: z.string().max(4096).describe('Folder of the `.gitignore`, relative to the root, empty for the root.'),
  text: z.string().max(1024 * 1024),
});

/** What a turn may reach, sent anew when the operator's policy has changed. Unknown keys are refused, as in a turn specification. */
export const turnEgressSchema = z.strictObject({
  revision: digestSchema.describe('Digest of all the rest: what says the same has the same.'),
  allow: allowListSchema.describe('Hosts of the backend and the mission.'),
  setupAllow: allowListSchema.describe('Hosts of the set-up.'),
  ceiling: allowListSchema.nullable(),
  addressRules: addressRulesSchema,
  budgets: egressBudgetsSchema.optional().describe('Sent where the operator bounds something.'),
});
export type TurnEgress = z.infer<typeof turnEgressSchema>;

/**
 * `spec.json` of a turn folder: everything the shim needs, and nothing it may interpret freely.
 * Unknown keys are refused: a policy field that is not understood must stop the turn.
 */
export const turnSpecSchema = z.strictObject({
  generation: z.int().min(1),
  missionId: missionIdSchema,
  phaseId: phaseIdSchema,
  runId: runIdSchema,
  turnId: turnIdSchema,
  nodeId: nodeIdSchema,
  attempt: attemptSchema,
  epoch: epochSchema,
  iteration: z.int().min(1),
  step: z.int().min(0),
  kind: phaseKindSchema,
  task: taskSchema,
  backend: z.string().min(1).max(64),
  driver: driverSchema,
  allowUnisolated: z.boolean(),
  agent: z.strictObject({
    command: commandSchema,
    files: z.array(z.strictObject({ name: fileNameSchema, blob: inputBlobSchema })).max(MAX_AGENT_FILES),
    env: z.record(z.string(), z.string()),
  }),
  setup: z
    .strictObject({
      command: commandSchema,
      allow: allowListSchema,
      timeoutMs: durationMsSchema,
      layer: z
        .strictObject({ files: layerFilesSchema.min(1), workspaceId: workspaceIdSchema })
        .optional()
        .describe('Keep what the set-up makes of these files, for VMs of the same workspace.'),
    })
    .nullable(),
  check: z.strictObject({ command: commandSchema, timeoutMs: durationMsSchema }).nullable(),
  gate: z.strictObject({
    mode: z.enum(['fresh-vm', 'same-vm']),
    requireChange: z.boolean(),
    maxRounds: z.int().min(1).max(10),
    protect: z.array(z.string().min(1).max(300)).max(100).describe('Globs restored from the base before verifying.'),
  }),
  egress: z.strictObject({
    allow: allowListSchema.describe('Hosts of the backend and the mission.'),
    ceiling: allowListSchema.nullable().describe("The operator's ceiling; null means the operator set none."),
    addressRules: addressRulesSchema.describe('Hosts whose addresses need not be public, as the operator named them.'),
    budgets: egressBudgetsSchema.optional().describe('Sent where the operator bounds something.'),
  }),
  learning: z
    .strictObject({ modelRoute: z.enum(['open', 'closed']) })
    .optional()
    .describe('The turn is of a learning run; `closed` gives it no model route, whatever the node has. Absent: an ordinary run.'),
  workspace: z.strictObject({ snapshotId: digestSchema, blob: inputBlobSchema }),
  base: z.strictObject({ snapshotId: digestSchema, blob: inputBlobSchema, commit: gitShaSchema.nullable() }),
  git: inputBlobSchema.nullable().describe('Host-made `.git`, null for a mission without a repository.'),
  ignore: z.array(ignoreFileSchema).max(2000).describe("The base's ignore rules."),
  demand: z.strictObject({ memoryMib: z.int().min(1), diskMib: z.int().min(1), vcpus: z.number().min(0.1) }),
  limits: z.strictObject({
    turnTimeoutMs: durationMsSchema,
    checkpointEveryMs: durationMsSchema,
    logBytes: countSchema.describe('Log bytes kept per attempt; more are dropped and counted.'),
  }),
  modelBudget: z
    .strictObject({ tokens: z.int().min(1).nullable(), micros: z.int().min(1).nullable() })
    .optional()
    .describe(
      'What the attempt may use of its model route, as its share of the budget of its seat; absent where that has none. Null bounds nothing.',
    ),
  lease: z.strictObject({
    ttlMs: durationMsSchema,
    selfStopAtMs: durationMsSchema.describe('Time without a renewal after which the shim stops itself.'),
  }),
});
export type TurnSpec = z.infer<typeof turnSpecSchema>;
