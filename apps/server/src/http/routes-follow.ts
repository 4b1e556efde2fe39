import { type LogChunk, type MissionEvent, missionEventSchema } from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { findCaller, isStillAccepted } from './auth.ts';
import { ownMission } from './routes-missions.ts';

const params = z.object({ id: z.string().max(64) });
/** Rows read at a time. */
const PAGE = 500;
const LOG_PAGE = 64;
/** A follower looks by itself after this long without a notice. */
const LOOK_AGAIN_MS = 2_000;

/** Events and logs of a mission, as a list or as a stream that goes on until the mission has ended. */
export function followRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();

  app.get(
    '/v1/missions/:id/events',
    { sse: 'dual', schema: { params, querystring: z.object({ after: z.coerce.number().int().min(0).default(0) }) } },
    async (request, reply) => {
      const { id } = request.params;
      const caller = await findCaller(context.db, request);
      await ownMission(context, caller, id);
      if (!wantsStream(request.headers.accept)) return { events: await readEvents(context, id, request.query.after) };
      let after = Math.max(request.query.after, Number(reply.sse.lastEventId ?? 0) || 0);
      const watch = context.feed.watch(id, ['events']);
      await follow(reply, watch, async () => {
        if (!(await isStillAccepted(context.db, caller))) return 'revoked';
        const events = await readEvents(context, id, after);
        for (const event of events) await reply.sse.send({ id: String(event.seq), event: 'mission', data: event });
        after = events.at(-1)?.seq ?? after;
        if (events.length > 0) return 'more';
        return (await hasEnded(context, id)) ? 'end' : 'wait';
      });
      return reply;
    },
  );

  app.get(
    '/v1/missions/:id/logs',
    { sse: 'dual', schema: { params, querystring: z.object({ after: z.string().max(200).optional() }) } },
    async (request, reply) => {
      const { id } = request.params;
      const caller = await findCaller(context.db, request);
      await ownMission(context, caller, id);
      const cursor = parseLogCursor(request.headers['last-event-id'] ?? request.query.after);
      if (!wantsStream(request.headers.accept)) {
        const chunks: LogChunk[] = [];
        for (let page = await readLog(context, id, cursor); page.length > 0; page = await readLog(context, id, cursor)) {
          for (const chunk of page) advance(cursor, chunk);
          chunks.push(...page);
        }
        return { chunks };
      }
      // The end of a mission is one of its events, and wakes a reader that has all of its log.
      const watch = context.feed.watch(id, ['log', 'events']);
      let isLive = false;
      await follow(reply, watch, async () => {
        if (!(await isStillAccepted(context.db, caller))) return 'revoked';
        const chunks = await readLog(context, id, cursor);
        for (const chunk of chunks) {
          advance(cursor, chunk);
          await reply.sse.send({ id: formatLogCursor(cursor), event: 'log', data: chunk });
        }
        // What came since this was read has told the watch, and so has an end since the mission was seen to live.
        if (chunks.length > 0) return isLive && chunks.length < LOG_PAGE ? 'wait' : 'more';
        isLive = !(await hasEnded(context, id));
        return isLive ? 'wait' : 'end';
      });
      return reply;
    },
  );
}

function wantsStream(accept: string | undefined): boolean {
  return accept?.includes('text/event-stream') === true;
}

/**
 * Sends until there is nothing more to come, the reader leaves, the server stops, or the token that it was opened with is revoked. Then it is closed
 * without a word of an end: who opens it again is refused.
 */
async function follow(
  reply: FastifyReply,
  watch: ReturnType<ServerContext['feed']['watch']>,
  step: () => Promise<'more' | 'wait' | 'end' | 'revoked'>,
): Promise<void> {
  const gone = new AbortController();
  reply.sse.onClose(() => gone.abort());
  reply.sse.sendHeaders();
  try {
    let ending = false;
    while (!gone.signal.aborted) {
      const next = await step();
      if (next === 'revoked') return;
      // Ended and nothing read: one more look, since the last event and the end are one transaction but two reads.
      if (next === 'end' && ending) break;
      ending = next === 'end';
      if (next === 'wait') await watch.next(LOOK_AGAIN_MS, gone.signal);
    }
    if (!gone.signal.aborted) await reply.sse.send({ event: 'done', data: {} });
  } finally {
    watch.stop();
    reply.sse.close();
  }
}

async function readEvents(context: ServerContext, missionId: string, after: number): Promise<MissionEvent[]> {
  const rows = await context.db
    .select()
    .from(tables.events)
    .where(and(eq(tables.events.missionId, missionId), gt(tables.events.seq, after)))
    .orderBy(asc(tables.events.seq))
    .limit(PAGE);
  return rows.map((row) => missionEventSchema.parse({ seq: row.seq, at: row.at.toISOString(), body: row.body }));
}

async function hasEnded(context: ServerContext, missionId: string): Promise<boolean> {
  const [row] = await context.db.select({ state: tables.missions.state }).from(tables.missions).where(eq(tables.missions.id, missionId));
  return row === undefined || row.state === 'completed' || row.state === 'failed' || row.state === 'cancelled';
}

/** How far a reader is: the offset in the log of each attempt, by `turnId.attempt`. */
type LogCursor = Map<string, number>;

/** The next chunks after the cursor, at most {@link LOG_PAGE}. One statement: a follower asks many times a second. */
async function readLog(context: ServerContext, missionId: string, cursor: LogCursor): Promise<LogChunk[]> {
  const seen = [...cursor].map(([key, length]) => ({ key, length }));
  const { rows } = await context.db.execute<{ turn_id: string; attempt: number; at_offset: string; bytes: Buffer }>(sql`
    select chunk.turn_id, chunk.attempt, chunk.at_offset, chunk.bytes
    from ${tables.turns} turn
    join ${tables.attempts} attempt on attempt.turn_id = turn.id
    left join jsonb_to_recordset(${JSON.stringify(seen)}::jsonb) as seen (key text, length bigint)
      on seen.key = attempt.turn_id || '.' || attempt.attempt
    join ${tables.logChunks} chunk
      on chunk.turn_id = attempt.turn_id and chunk.attempt = attempt.attempt and chunk.at_offset >= coalesce(seen.length, 0)
    where turn.mission_id = ${missionId} and attempt.log_bytes > coalesce(seen.length, 0)
    order by turn.ordinal, attempt.attempt, chunk.at_offset
    limit ${LOG_PAGE}`);
  return rows.map((row) => ({
    turnId: row.turn_id,
    attempt: row.attempt,
    offset: Number(row.at_offset),
    data: row.bytes.toString('base64'),
  }));
}

function advance(cursor: LogCursor, chunk: LogChunk): void {
  cursor.set(`${chunk.turnId}.${chunk.attempt}`, chunk.offset + Buffer.byteLength(chunk.data, 'base64'));
}

/** `turnId.attempt:offset,...`: where a stream was left, so that a reconnect repeats and loses nothing. */
function parseLogCursor(text: string | readonly string[] | undefined): LogCursor {
  const cursor: LogCursor = new Map();
  if (typeof text !== 'string') return cursor;
  for (const part of text.split(',')) {
    const match = /^(trn_[0-9a-z]{16}\.\d{1,4}):(\d{1,15})$/.exec(part);
    if (match?.[1] !== undefined) cursor.set(match[1], Number(match[2]));
  }
  return cursor;
}

function formatLogCursor(cursor: LogCursor): string {
  return [...cursor].map(([key, offset]) => `${key}:${offset}`).join(',');
}
