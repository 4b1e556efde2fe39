import * as z from 'zod';
import { attemptSchema, countSchema, durationMsSchema, missionIdSchema, timeSchema, turnIdSchema, workspaceIdSchema } from './values.ts';

/** Turns that one seat may be allowed at once. */
export const MAX_SEAT_TURNS = 1_000;
/** Turns of a seat at once where nothing is said. */
export const DEFAULT_SEAT_TURNS = 1;

/** Least tokens, and least money in its unit, that a budget of a seat may be: what an attempt is given at least. */
export const MIN_SEAT_BUDGET = { tokens: 1_000, money: 0.001 } as const;
/** Most of either. */
export const MAX_SEAT_BUDGET = { tokens: 1_000_000_000_000, money: 1_000_000_000 } as const;

const ID_TAIL = '[0-9a-hjkmnp-tv-z]{16}';
export const seatIdSchema = z
  .string()
  .regex(new RegExp(`^set_${ID_TAIL}$`), 'must be an id of the form set_<16 characters>')
  .describe('Seat id.');
export const seatKeyIdSchema = z
  .string()
  .regex(new RegExp(`^tok_${ID_TAIL}$`), 'must be an id of the form tok_<16 characters>')
  .describe('Id of a seat key, which is not its secret.');
/** A role that a seat is for: its name in commands, settings and file names. */
export const seatRoleSchema = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be a lower-case word of at most 32 characters');

/** The seat that a mission works under. */
export const seatRefSchema = z.object({
  id: seatIdSchema,
  role: seatRoleSchema,
  keyId: seatKeyIdSchema.describe('Key that it depends on.'),
});
export type SeatRef = z.infer<typeof seatRefSchema>;

const tokensSchema = z.int().min(MIN_SEAT_BUDGET.tokens).max(MAX_SEAT_BUDGET.tokens).nullable();
const moneySchema = z.number().min(MIN_SEAT_BUDGET.money).max(MAX_SEAT_BUDGET.money).nullable();
/** What the turns of a seat may use of model routes; null bounds nothing. Money is in the unit of the nodes' price tables. */
const budgetShape = {
  turnTokens: tokensSchema.describe('Most that one attempt is given.'),
  dayTokens: tokensSchema.describe('For all attempts placed on one day, UTC.'),
  totalTokens: tokensSchema.describe('For all attempts ever.'),
  turnMoney: moneySchema,
  dayMoney: moneySchema,
  totalMoney: moneySchema,
};
export const seatBudgetSchema = z.object(budgetShape);
export type SeatBudgetView = z.infer<typeof seatBudgetSchema>;
/** Changes of a budget: what is absent stays as it is. */
export const seatBudgetChangeSchema = z.strictObject(budgetShape).partial();
export type SeatBudgetChange = z.infer<typeof seatBudgetChangeSchema>;

const spentSchema = z.object({ tokens: z.int().min(0), money: z.number().min(0) });
/** What the turns of a seat have used. */
export const seatUseSchema = z.object({
  day: spentSchema.describe('Charged for attempts placed today, UTC.'),
  total: spentSchema.describe('Charged for all that have ended.'),
  held: spentSchema.describe('Given to attempts that run.'),
  attempts: countSchema.describe('Attempts that have ended.'),
});
export type SeatUse = z.infer<typeof seatUseSchema>;

export const seatKeyViewSchema = z.object({
  id: seatKeyIdSchema,
  name: z.string(),
  createdAt: timeSchema,
});
export const seatViewSchema = z.object({
  id: seatIdSchema,
  role: seatRoleSchema,
  linked: z.boolean().describe('False: no key of it is accepted, and nothing runs under it.'),
  maxTurns: z.int().min(1).max(MAX_SEAT_TURNS).describe('Turns that may run under it at once.'),
  leaseMs: durationMsSchema.nullable().optional().describe('Longest that one turn may run under it, in ms; null leaves that to the turn.'),
  turns: countSchema.describe('Turns that run under it now.'),
  keys: z.array(seatKeyViewSchema).describe('Keys that are accepted.'),
  budget: seatBudgetSchema.optional().describe('Absent from a server of before budgets.'),
  use: seatUseSchema.optional().describe('Absent from a server of before budgets.'),
  createdAt: timeSchema,
});
export type SeatView = z.infer<typeof seatViewSchema>;
export const seatListSchema = z.object({ seats: z.array(seatViewSchema) });

export const linkSeatRequestSchema = z.strictObject({
  role: seatRoleSchema,
  maxTurns: z.int().min(1).max(MAX_SEAT_TURNS).optional().describe('Absent: as it is, for a new seat 1.'),
  leaseMs: durationMsSchema.nullable().optional().describe('Absent: as it is, for a new seat null.'),
  budget: seatBudgetChangeSchema.optional(),
});
export const mintSeatKeyRequestSchema = z.strictObject({
  name: z.string().trim().min(1).max(200).describe('For people: who holds the key.'),
});
/** The one answer that holds the secret of a seat key; the server keeps its SHA-256 alone. */
export const mintedSeatKeySchema = z.strictObject({
  key: z.string().min(1).max(4096).describe('The secret.'),
  keyId: seatKeyIdSchema,
  seatId: seatIdSchema,
  workspaceId: workspaceIdSchema,
  createdAt: timeSchema,
});
export type MintedSeatKey = z.infer<typeof mintedSeatKeySchema>;
export const revokeSeatKeyRequestSchema = z.strictObject({
  successor: seatKeyIdSchema.optional().describe('Key of the same seat that takes over its missions; absent: they are ended.'),
});
/** What was ended by a revocation. */
export const seatRevokedSchema = z.object({ id: z.string(), missions: z.array(z.string()).describe('Missions that are being ended.') });
export type SeatRevoked = z.infer<typeof seatRevokedSchema>;

/** What one attempt of a seat was given and charged with; null where it had no budget, or has not ended. */
export const seatAttemptSchema = z.object({
  missionId: missionIdSchema,
  turnId: turnIdSchema,
  attempt: attemptSchema,
  state: z.enum(['reserved', 'accepted', 'ended']),
  outcome: z.string().nullable().describe('Kind of the outcome.'),
  startedAt: timeSchema,
  grant: z.object({ tokens: z.int().nullable(), money: z.number().nullable() }).nullable(),
  charge: spentSchema.nullable(),
});
export type SeatAttempt = z.infer<typeof seatAttemptSchema>;
/** Attempts of one seat that an answer holds. */
export const MAX_SEAT_ATTEMPTS = 100;
export const seatDetailSchema = z.object({
  seat: seatViewSchema,
  attempts: z.array(seatAttemptSchema).describe('The newest, newest first.'),
});
export type SeatDetail = z.infer<typeof seatDetailSchema>;

/** Whom a token stands for. */
export const whoamiSchema = z.object({
  tokenId: z.string(),
  name: z.string(),
  role: z.enum(['operator', 'member', 'seat']),
  workspace: z.object({ id: workspaceIdSchema, name: z.string() }),
  seat: z.object({ id: seatIdSchema, role: seatRoleSchema }).nullable(),
  mayManageSeats: z.boolean(),
});
export type Whoami = z.infer<typeof whoamiSchema>;

/** Paths of the HTTP API that concern seats. */
export const seatPaths = {
  whoami: '/v1/whoami',
  seats: '/v1/seats',
  seat: (id: string) => `/v1/seats/${id}`,
  unlink: (id: string) => `/v1/seats/${id}/unlink`,
  keys: (id: string) => `/v1/seats/${id}/keys`,
  revoke: (keyId: string) => `/v1/seat-keys/${keyId}/revoke`,
} as const;
