import * as z from 'zod';
import { outcomeSchema } from './outcome.ts';
import { policyWarningSchema } from './policy-view.ts';
import { seatRefSchema } from './seats.ts';
import { turnEventBodySchema } from './turn-event.ts';
import { attemptSchema, countSchema, gitShaSchema, nodeIdSchema, phaseIdSchema, timeSchema, turnIdSchema } from './values.ts';

export const missionStateSchema = z.enum(['draft', 'running', 'completed', 'failed', 'cancelled']);
export const phaseStateSchema = z.enum(['pending', 'running', 'completed', 'failed', 'skipped']);

export const deniedHostSchema = z.object({ host: z.string(), port: z.int().nullable(), reason: z.string(), connections: countSchema });

/** What a phase delivered, or why nothing was. */
export const deliverySchema = z.object({
  phaseId: phaseIdSchema,
  attempt: attemptSchema,
  state: z.enum(['delivered', 'nothing_to_deliver', 'awaiting_approval', 'failed']),
  branch: z.string().nullable(),
  commit: gitShaSchema.nullable(),
  baseCommit: gitShaSchema.nullable(),
  verified: z.boolean(),
  pushed: z.enum(['not_wanted', 'pushed', 'failed', 'awaiting_approval']),
  pushDetail: z.string(),
  diffstat: z.object({ files: countSchema, insertions: countSchema, deletions: countSchema }).nullable(),
  diffError: z.string().nullable(),
  protectedPaths: z.array(z.string()),
  leftOut: z
    .array(z.object({ path: z.string(), reason: z.string() }))
    .describe('Paths of the tree that are not in the commit: ignored by the base, or not for git.'),
  unfiltered: z
    .array(z.object({ path: z.string(), filter: z.string() }))
    .default([])
    .describe(
      "Paths that are in the commit as they lie in the tree, though the base's attributes send them through a filter, such as `lfs`.",
    ),
  checkInputsChanged: z.array(z.string()),
});
export type Delivery = z.infer<typeof deliverySchema>;

/** The last line of a mission: what `run --json` ends with. */
export const missionEndSchema = z.object({
  missionState: missionStateSchema,
  outcome: outcomeSchema.nullable(),
  exitCode: z.int().min(0).max(4),
  detail: z.string(),
  delivery: deliverySchema.nullable(),
  denied: z.array(deniedHostSchema),
});
export type MissionEnd = z.infer<typeof missionEndSchema>;

const phase = { phaseId: phaseIdSchema };
const turn = {
  phaseId: phaseIdSchema,
  turnId: turnIdSchema,
  attempt: countSchema.max(1000).describe('Attempt number; 0 for a turn that ended before one was made.'),
};

/** What happened to a mission, in the order of its sequence. */
export const missionEventBodySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('mission.created'), title: z.string(), seat: seatRefSchema.optional() }),
  z.object({ kind: z.literal('mission.started') }),
  z.object({ kind: z.literal('mission.cancel_requested') }),
  z.object({ kind: z.literal('mission.retried'), ...phase, reopened: countSchema }),
  z.object({ kind: z.literal('phase.started'), ...phase, position: countSchema, phaseKind: z.string(), iteration: z.int() }),
  z.object({ kind: z.literal('phase.completed'), ...phase }),
  z.object({ kind: z.literal('phase.failed'), ...phase, outcome: outcomeSchema, detail: z.string() }),
  z.object({ kind: z.literal('phase.skipped'), ...phase }),
  z.object({ kind: z.literal('turn.waiting'), ...turn, reason: z.string(), detail: z.string() }),
  z.object({ kind: z.literal('turn.placed'), ...turn, nodeId: nodeIdSchema, node: z.string() }),
  z.object({ kind: z.literal('turn.accepted'), ...turn }),
  z.object({ kind: z.literal('turn.event'), ...turn, seq: z.int(), body: turnEventBodySchema }),
  z.object({ kind: z.literal('turn.ended'), ...turn, outcome: outcomeSchema, detail: z.string(), retrying: z.boolean() }),
  z.object({ kind: z.literal('delivery'), delivery: deliverySchema }),
  z.object({ kind: z.literal('delivery.approved'), ...phase, by: z.string() }),
  z.object({
    kind: z.literal('notice'),
    level: z.enum(['info', 'warning', 'error']),
    code: z.string(),
    message: z.string(),
    warning: policyWarningSchema.optional().describe('Of a notice that the policy leaves out what the mission asks for.'),
  }),
  z.object({ kind: z.literal('mission.ended'), end: missionEndSchema }),
]);
export type MissionEventBody = z.infer<typeof missionEventBodySchema>;

/** A mission event; `seq` counts from 1 within the mission and is the SSE id. */
export const missionEventSchema = z.object({ seq: z.int().min(1), at: timeSchema, body: missionEventBodySchema });
export type MissionEvent = z.infer<typeof missionEventSchema>;
