import * as z from 'zod';
import { countSchema, durationMsSchema } from './values.ts';

/** Loopback port of the guest that leads to the egress proxy of its host. */
export const PROXY_PORT = 3128;
/** Loopback port of the guest that leads to the model route. */
export const MODEL_PORT = 11434;

const execId = z.string().regex(/^[a-z0-9-]{1,64}$/);
const guestPath = z.string().min(1).max(4096).startsWith('/');

/** Environment as the host sends it; the guest checks each entry and refuses the exec on a bad one. */
export const environmentSchema = z.record(z.string(), z.string());

/** Head of a stream that the host opens in the guest. */
export const hostRequestSchema = z.discriminatedUnion('t', [
  z.object({
    t: z.literal('health'),
    addClockMs: z.int().optional().describe('`ms` to be added to the clock of a VM before it answers; a sandbox has that of its host.'),
  }),
  z.object({
    t: z.literal('exec'),
    id: execId,
    argv: z.array(z.string()).min(1).max(1024),
    cwd: guestPath,
    env: environmentSchema.nullable(),
    timeoutMs: durationMsSchema,
    outputLimitBytes: countSchema.describe('Bytes of output kept; later ones are dropped and counted.'),
  }),
  z.object({ t: z.literal('wait'), id: execId }),
  z.object({ t: z.literal('follow'), id: execId, offset: countSchema }),
  z.object({ t: z.literal('kill'), id: execId, signal: z.enum(['SIGTERM', 'SIGKILL', 'SIGINT']) }),
  z.object({
    t: z.literal('put'),
    path: guestPath,
    readOnly: z.boolean(),
    maxBytes: countSchema,
    onto: z
      .enum(['over', 'out'])
      .optional()
      .describe(
        '`over`: what the folder holds beside the tree stays; `out`: the tree is taken out of the folder. Absent: it takes its place.',
      ),
  }),
  z.object({
    t: z.literal('get'),
    id: execId,
    path: guestPath,
    exclude: z.object({
      hard: z.array(z.string()).describe('Directory names left out when nothing tracked lies below.'),
      listed: z.array(z.string()).describe('Directory names left out when, besides, the base ignores them.'),
      trackedDirs: z.array(z.string()).describe('Folders (latin1 of the bytes) that hold a tracked path.'),
      ignore: z.array(z.object({ dir: z.string(), text: z.string() })),
    }),
  }),
  z.object({ t: z.literal('trailer'), id: execId }),
  z.object({
    t: z.literal('shutdown'),
    forget: z.array(guestPath).max(16).optional().describe('Folders that are removed once nothing runs any more.'),
  }),
]);
export type HostRequest = z.infer<typeof hostRequestSchema>;
export const HOST_REQUEST_TYPES = ['health', 'exec', 'wait', 'follow', 'kill', 'put', 'get', 'trailer', 'shutdown'] as const;

/** Head of a stream that the guest opens at its host. There is no destination in it. */
export const guestRequestSchema = z.discriminatedUnion('t', [z.object({ t: z.literal('tunnel') }), z.object({ t: z.literal('model') })]);
export type GuestRequest = z.infer<typeof guestRequestSchema>;
export const GUEST_REQUEST_TYPES = ['tunnel', 'model'] as const;

/** Answer head when a request is refused, both ways. */
export const refusalSchema = z.object({ ok: z.literal(false), code: z.string().max(64), message: z.string().max(1000) });
/** Answer head when a request is taken; what follows depends on the request. */
export const acceptedSchema = z.object({ ok: z.literal(true) });
export const replySchema = z.discriminatedUnion('ok', [acceptedSchema, refusalSchema]);
export type Reply = z.infer<typeof replySchema>;

export const healthReplySchema = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    generation: z.int(),
    proxy: z.object({ up: z.boolean(), port: z.int(), error: z.string().nullable() }),
    model: z.object({ up: z.boolean(), port: z.int(), error: z.string().nullable() }),
    execs: countSchema,
    clockMs: countSchema.optional().describe("The guest's clock as it answers, in `ms` since 1970."),
  }),
  refusalSchema,
]);
export type HealthReply = z.infer<typeof healthReplySchema>;

/** How an exec ended. A missing record is never a success: the host reads it as lost. */
export const execEndSchema = z.object({
  kind: z.enum(['exited', 'signalled', 'timed_out']),
  exitCode: z.int().min(0).max(255).nullable(),
  signal: z.string().max(32).nullable(),
  outputBytes: countSchema,
  droppedBytes: countSchema,
  survivors: countSchema.describe('Processes of the exec that had to be killed after its leader ended.'),
  memoryKills: countSchema
    .optional()
    .describe('Processes that the kernel killed for want of memory while it ran; of all that the kernel runs.'),
  diskRoomBytes: countSchema
    .optional()
    .describe('Room left at its end on the fullest disk of its folder and its TMPDIR, in `bytes`; 0 where no file can be made.'),
});
export type ExecEnd = z.infer<typeof execEndSchema>;
export const waitReplySchema = z.discriminatedUnion('ok', [z.object({ ok: z.literal(true), end: execEndSchema }), refusalSchema]);

/** Last bytes of a `put` stream: one JSON object, then the end of the stream. */
export const putEndSchema = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    entries: countSchema,
    bytes: countSchema,
    replaced: countSchema.optional().describe('Of a tree put over a folder: paths of the folder that gave way to others.'),
    out: z
      .object({
        removed: countSchema,
        absent: countSchema.describe('Files and links of the tree that the folder did not hold.'),
        differing: countSchema,
        named: z.array(z.string()).max(100).describe('Some of the paths that differ.'),
      })
      .optional()
      .describe('Of a tree taken out of a folder.'),
  }),
  refusalSchema,
]);
export type PutEnd = Extract<z.infer<typeof putEndSchema>, { ok: true }>;

/** What a `get` sent, read on a second stream after its end: a cut archive has no valid trailer. `sha256` is the snapshot id of the tree. */
export const trailerReplySchema = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    bytes: countSchema,
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    entries: countSchema,
    skipped: z.array(z.object({ path: z.string(), reason: z.string() })).max(1000),
    changedWhilePacking: z.array(z.string()).max(1000),
    excluded: z.array(z.object({ path: z.string(), files: countSchema, bytes: countSchema, ignored: z.boolean() })).max(10_000),
  }),
  refusalSchema,
]);
export type Trailer = Extract<z.infer<typeof trailerReplySchema>, { ok: true }>;
