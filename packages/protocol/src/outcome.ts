import * as z from 'zod';
import { attemptSchema, countSchema, digestSchema, epochSchema, isolationSchema, timeSchema, turnIdSchema } from './values.ts';

export const failedToStartReasonSchema = z.enum([
  'boot_failed',
  'workspace_unavailable',
  'inject_failed',
  'no_capable_node',
  'never_fits',
  'unisolated_not_allowed',
  'spec_refused',
]);
export const lostReasonSchema = z.enum(['node_lost', 'shim_died', 'lease_lost', 'guest_lost']);
export const refusedReasonSchema = z.enum(['environment', 'egress_down', 'agent_files', 'protected_paths']);

/** How an attempt ended: a closed list. */
export const outcomeSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('completed') }),
  z.object({ kind: z.literal('gate_capped') }),
  z.object({ kind: z.literal('gate_unrunnable') }),
  z.object({ kind: z.literal('setup_failed') }),
  z.object({ kind: z.literal('failed_to_start'), reason: failedToStartReasonSchema }),
  z.object({ kind: z.literal('uncollected') }),
  z.object({ kind: z.literal('timed_out') }),
  z.object({ kind: z.literal('budget_exceeded') }),
  z.object({ kind: z.literal('refused'), reason: refusedReasonSchema }),
  z.object({ kind: z.literal('spool_full') }),
  z.object({ kind: z.literal('lost'), reason: lostReasonSchema }),
  z.object({ kind: z.literal('cancelled') }),
]);
export type Outcome = z.infer<typeof outcomeSchema>;

/** Code of what is behind an outcome. No closed list: a receiver shows one that it does not know, and decides nothing by it. */
export const causeSchema = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/);

/** Whether the check's verdict is the host's (`verified`), the guest's (`reported`), a failure, or there was none to run. */
export const verificationSchema = z.enum(['verified', 'reported', 'failed', 'none']);

export const excludedSchema = z.object({
  path: z.string().describe('Directory left out, relative to the root; bytes that are not UTF-8 are escaped.'),
  files: countSchema,
  bytes: countSchema,
  ignored: z.boolean().describe('Whether the base ignores it; false is shown as a warning.'),
});

/** A tree that came back, staged in the turn folder and then stored as a blob. */
export const capturedTreeSchema = z.object({
  snapshotId: digestSchema,
  blobDigest: digestSchema,
  bytes: countSchema.describe('Stored size in `bytes`.'),
  files: countSchema,
  round: z.int().min(1),
  excluded: z.array(excludedSchema),
  skipped: z.array(z.string()).max(1000).describe('Entries that cannot travel: sockets, FIFOs, devices, `.git` in any spelling.'),
});
export type CapturedTree = z.infer<typeof capturedTreeSchema>;

export const roundRecordSchema = z.object({
  round: z.int().min(1),
  agent: z.object({ exitCode: z.int().nullable(), signal: z.string().nullable(), timedOut: z.boolean() }).nullable(),
  changed: z.boolean().nullable().describe('Null where the tree was not collected.'),
  check: z
    .object({ status: z.enum(['passed', 'failed', 'unrunnable', 'not_run']), exitCode: z.int().nullable(), outputTail: z.string() })
    .nullable(),
  gate: z.object({ verdict: z.enum(['satisfied', 'next_round', 'capped', 'unrunnable']), reason: z.string() }).nullable(),
});
export type RoundRecord = z.infer<typeof roundRecordSchema>;

export const egressSummarySchema = z.object({
  allowed: z.array(z.object({ host: z.string(), port: z.int(), connections: countSchema, bytesIn: countSchema, bytesOut: countSchema })),
  denied: z.array(z.object({ host: z.string(), port: z.int().nullable(), reason: z.string(), connections: countSchema })),
});
export type EgressSummary = z.infer<typeof egressSummarySchema>;

/** Tokens of model calls: `input` is what was neither read from a cache nor written to one. */
export const tokenUsageSchema = z.object({ input: countSchema, cacheRead: countSchema, cacheWrite: countSchema, output: countSchema });

/** What an attempt used of its model route. */
export const modelUsageSchema = z.object({
  format: z.string().max(64),
  calls: countSchema.describe('Calls that were forwarded.'),
  unreadCalls: countSchema.describe('Calls of which the upstream did not say what they cost; each is charged as it was reserved.'),
  refused: countSchema,
  usage: tokenUsageSchema,
  chargedTokens: countSchema,
  chargedMicros: countSchema.describe('Money by the price table of the node, in millionths of its unit; 0 without one.'),
  isBudgetReached: z.boolean(),
});
export type ModelUsage = z.infer<typeof modelUsageSchema>;

/** `outcome.json` of a turn folder and the body of `turn.outcome`: what one attempt leaves behind. */
export const attemptResultSchema = z.object({
  generation: z.int().min(1),
  turnId: turnIdSchema,
  attempt: attemptSchema,
  epoch: epochSchema,
  outcome: outcomeSchema,
  detail: z.string().max(4000).describe('What happened, for a person; empty where the outcome says all.'),
  cause: causeSchema.optional().describe('What is behind the outcome; absent where nothing more is known.'),
  isolation: isolationSchema,
  rounds: z.array(roundRecordSchema),
  tree: capturedTreeSchema.nullable().describe('The last collected tree; for `completed` the verified one.'),
  checkpoint: z.boolean().describe('Whether `tree` is a checkpoint taken while the agent worked.'),
  verification: verificationSchema,
  checkInputsChanged: z.array(z.string()),
  restoredPaths: z.array(z.string()).describe('Protected check inputs restored from the base before verifying.'),
  egress: egressSummarySchema,
  model: modelUsageSchema.optional().describe('Absent where the turn had no model route.'),
  logBytes: countSchema,
  lastSeq: countSchema,
  startedAt: timeSchema,
  endedAt: timeSchema,
});
export type AttemptResult = z.infer<typeof attemptResultSchema>;
