import * as z from 'zod';
import { turnEgressSchema } from './turn-spec.ts';
import { attemptSchema, countSchema, digestSchema, epochSchema, turnIdSchema } from './values.ts';

/**
 * Names inside a turn folder (`turns/<turnId>.<attempt>/`), the wire between node agent and shim.
 * `spec.json` and `inputs/` are written by the node agent before the shim starts; all else by the shim.
 */
export const TURN_FOLDER = {
  spec: 'spec.json',
  inputs: 'inputs',
  events: 'events.jsonl',
  log: 'log',
  outcome: 'outcome.json',
  staged: 'staged',
  identity: 'shim.json',
  control: 'control.sock',
  shimLog: 'shim.log',
} as const;

/** Who the shim of a folder is: pid alone is reused, so start time and boot id belong to it. */
export const shimIdentitySchema = z.object({
  generation: z.int().min(1),
  pid: z.int().min(1),
  startTicks: z.string().describe('Field 22 of `/proc/PID/stat`.'),
  bootId: z.string(),
});
export type ShimIdentity = z.infer<typeof shimIdentitySchema>;

/** Characters of a handle on `control.sock`. */
const MAX_MODEL_HANDLE = 64;

/** One request line on `control.sock`; the answer is one line. */
export const controlRequestSchema = z.discriminatedUnion('t', [
  z.object({
    t: z.literal('status'),
    modelHandle: z
      .string()
      .max(MAX_MODEL_HANDLE)
      .optional()
      .describe('What the credential broker of the node knows the attempt by from now on; it is on no disk and in no environment.'),
  }),
  z.object({ t: z.literal('cancel'), reason: z.enum(['cancelled', 'superseded', 'draining']) }),
  z.object({
    t: z.literal('renew'),
    sentAtUptimeMs: z.number().describe('Boot time in `ms` when the renewal was sent to the server.'),
    egress: turnEgressSchema.optional().describe('What the turn may reach from now on; absent: what it may reach already.'),
  }),
]);
export type ControlRequest = z.infer<typeof controlRequestSchema>;
export const CONTROL_REQUEST_TYPES = ['status', 'cancel', 'renew'] as const;

export const controlReplySchema = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    turnId: turnIdSchema,
    attempt: attemptSchema,
    epoch: epochSchema,
    step: z.string(),
    leaseLeftMs: z.number(),
    sandboxPids: z.array(z.int()).max(10_000),
    egressRevision: digestSchema
      .optional()
      .describe('The newest egress that it was told of and follows; absent where it follows its specification.'),
  }),
  z.object({ ok: z.literal(false), code: z.string(), message: z.string() }),
]);
export type ControlReply = z.infer<typeof controlReplySchema>;

/** A file under `staged/` that is to be uploaded as a blob. */
export const stagedFileSchema = z.object({ digest: digestSchema, bytes: countSchema });
