import * as z from 'zod';
import { capturedTreeSchema, causeSchema, outcomeSchema, tokenUsageSchema } from './outcome.ts';
import { countSchema, isolationSchema, timeSchema } from './values.ts';

/** The steps of an attempt, in the order in which they first occur. */
export const attemptStepSchema = z.enum([
  'fetching',
  'booting',
  'injecting',
  'setting_up',
  'agent',
  'collecting',
  'destroying',
  'verifying',
  'finishing',
]);
export type AttemptStep = z.infer<typeof attemptStepSchema>;

/** One audit line of the egress proxy, durable. */
export const egressLineSchema = z.object({
  event: z.enum(['open', 'refused', 'end']),
  connection: z.int().min(0),
  purpose: z.enum(['setup', 'agent', 'check']),
  host: z.string().max(512).nullable(),
  port: z.int().nullable(),
  address: z.string().max(64).nullable(),
  verdict: z.string().max(32),
  reason: z.string().max(128),
  rule: z.string().max(512).nullable(),
  bytesIn: countSchema.nullable(),
  bytesOut: countSchema.nullable(),
  lookupMs: z.number().nullable(),
  connectMs: z.number().nullable(),
  durationMs: z.number().nullable(),
  via: z
    .string()
    .max(32)
    .optional()
    .describe("`proxy`: through the operator's proxy, to `address`; `name-only`: by name, no address was judged; absent: directly."),
});
export type EgressLine = z.infer<typeof egressLineSchema>;

/** One audit line of the model route: what a notice of the codes `model_call_...` tells. */
export const modelCallSchema = z.object({
  event: z.enum(['open', 'refused', 'end']),
  call: z.int().min(1),
  reason: z.string().max(64),
  path: z.string().max(512).nullable(),
  model: z.string().max(128).nullable(),
  features: z.array(z.string().max(64)).max(32).describe('What the body asked for and policy does not allow.'),
  status: z.int().nullable(),
  usage: tokenUsageSchema.nullable().describe('Null where the upstream did not say.'),
  chargedTokens: countSchema.nullable(),
  chargedMicros: countSchema.nullable(),
  leaks: countSchema.describe('How often the credential was taken out of the answer.'),
  durationMs: z.number().nullable(),
});
export type ModelCall = z.infer<typeof modelCallSchema>;

const exit = { exitCode: z.int().nullable(), signal: z.string().nullable(), timedOut: z.boolean() };

/** What a shim reports of its attempt: one line of `events.jsonl`, then one entry of `turn.events`. */
export const turnEventBodySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('attempt.started'), isolation: isolationSchema, detail: z.string() }),
  z.object({ kind: z.literal('step'), step: attemptStepSchema, round: z.int().min(0), purpose: z.enum(['agent', 'verify']) }),
  z.object({ kind: z.literal('setup.ended'), round: z.int(), purpose: z.enum(['agent', 'verify']), ...exit, durationMs: z.number() }),
  z.object({ kind: z.literal('agent.started'), round: z.int(), logOffset: countSchema }),
  z.object({ kind: z.literal('agent.ended'), round: z.int(), ...exit, durationMs: z.number(), survivors: countSchema }),
  z.object({ kind: z.literal('collected'), tree: capturedTreeSchema, changed: z.boolean() }),
  z.object({ kind: z.literal('checkpoint'), tree: capturedTreeSchema }),
  z.object({
    kind: z.literal('check.ended'),
    round: z.int(),
    status: z.enum(['passed', 'failed', 'unrunnable']),
    ...exit,
    durationMs: z.number(),
    outputTail: z.string(),
  }),
  z.object({
    kind: z.literal('gate'),
    round: z.int(),
    verdict: z.enum(['satisfied', 'next_round', 'capped', 'unrunnable']),
    reason: z.string(),
    feedback: z.string(),
  }),
  z.object({ kind: z.literal('egress'), line: egressLineSchema }),
  z.object({ kind: z.literal('link.refused'), reason: z.string() }),
  z.object({
    kind: z.literal('notice'),
    level: z.enum(['info', 'warning', 'error']),
    code: z.string(),
    message: z.string(),
    call: modelCallSchema.optional().describe('Of a notice about a model call.'),
  }),
  z.object({ kind: z.literal('attempt.ended'), outcome: outcomeSchema, detail: z.string(), cause: causeSchema.optional() }),
]);
export type TurnEventBody = z.infer<typeof turnEventBodySchema>;

/** A turn event with its place: `seq` counts from 1 within the attempt, without gaps. */
export const turnEventSchema = z.object({ seq: z.int().min(1), at: timeSchema, body: turnEventBodySchema });
export type TurnEvent = z.infer<typeof turnEventSchema>;
