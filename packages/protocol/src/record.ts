import * as z from 'zod';
import { deliverySchema } from './mission-event.ts';
import {
  capturedTreeSchema,
  egressSummarySchema,
  modelUsageSchema,
  outcomeSchema,
  roundRecordSchema,
  verificationSchema,
} from './outcome.ts';
import { seatRefSchema } from './seats.ts';
import {
  addressRulesSchema,
  attemptSchema,
  digestSchema,
  epochSchema,
  gitShaSchema,
  isolationSchema,
  missionIdSchema,
  nodeIdSchema,
  phaseIdSchema,
  runIdSchema,
  timeSchema,
  turnIdSchema,
} from './values.ts';

/** `record.json`: the statement of one run, stored as an artifact. Not signed in this generation. */
export const runRecordSchema = z.object({
  generation: z.int().min(1),
  missionId: missionIdSchema,
  phaseId: phaseIdSchema,
  runId: runIdSchema,
  turnId: turnIdSchema,
  attempt: attemptSchema,
  epoch: epochSchema,
  nodeId: nodeIdSchema.nullable(),
  seat: seatRefSchema.optional().describe('Seat it was done under; absent: the caller of the workspace itself.'),
  learning: z
    .object({ withCredentials: z.boolean() })
    .optional()
    .describe('It was a learning run, which reached more than missions do; absent: an ordinary one.'),
  task: z.string(),
  agentCommand: z.string(),
  backend: z.string(),
  driver: z.string(),
  isolation: isolationSchema,
  base: z.object({
    commit: gitShaSchema.nullable(),
    snapshotId: digestSchema,
    synthetic: z.boolean(),
    includedSecrets: z.array(z.string()),
  }),
  check: z.object({ command: z.string(), verification: verificationSchema, inputsChanged: z.array(z.string()) }).nullable(),
  setup: z
    .object({
      command: z.string(),
      layerFiles: z.array(z.string()).optional().describe('Files that a layer of it was made of; absent: none was wanted.'),
    })
    .nullable(),
  rounds: z.array(roundRecordSchema),
  egress: z.object({
    allow: z.array(z.string()),
    setupAllow: z.array(z.string()),
    addressRules: addressRulesSchema,
    summary: egressSummarySchema,
  }),
  model: modelUsageSchema.optional().describe('What the attempt used of its model route; absent where it had none.'),
  tree: capturedTreeSchema.nullable(),
  outcome: outcomeSchema,
  detail: z.string(),
  delivery: deliverySchema.nullable(),
  startedAt: timeSchema,
  endedAt: timeSchema,
});
export type RunRecord = z.infer<typeof runRecordSchema>;
