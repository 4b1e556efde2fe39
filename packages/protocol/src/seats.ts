import * as z from 'zod';
import { countSchema, timeSchema, workspaceIdSchema } from './values.ts';

/** Turns that one seat may be allowed at once. */
export const MAX_SEAT_TURNS = 1_000;
/** Turns of a seat at once where nothing is said. */
export const DEFAULT_SEAT_TURNS = 1;

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
  turns: countSchema.describe('Turns that run under it now.'),
  keys: z.array(seatKeyViewSchema).describe('Keys that are accepted.'),
  createdAt: timeSchema,
});
export type SeatView = z.infer<typeof seatViewSchema>;
export const seatListSchema = z.object({ seats: z.array(seatViewSchema) });

export const linkSeatRequestSchema = z.strictObject({
  role: seatRoleSchema,
  maxTurns: z.int().min(1).max(MAX_SEAT_TURNS).optional().describe('Absent: as it is, for a new seat 1.'),
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
  unlink: (id: string) => `/v1/seats/${id}/unlink`,
  keys: (id: string) => `/v1/seats/${id}/keys`,
  revoke: (keyId: string) => `/v1/seat-keys/${keyId}/revoke`,
} as const;
