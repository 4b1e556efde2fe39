import { type LogChunk, type MissionEvent, missionEventSchema } from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { and, asc, eq, gt } from 'drizzle-orm';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { ServerContext } from '../context.ts';
import { findCaller } from './auth.ts';
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
      await ownMission(context, await findCaller(context.db, request), id);
      if (!wantsStream(request.headers.accept)) return { events: await readEvents(context, id, request.query.after) };
      let after = Math.max(request.query.after, Number(reply.sse.lastEventId ?? 0) || 0);
      const watch = context.feed.watch(id, 'events');
      await follow(reply, watch, async () => {
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
      await ownMission(context, await findCaller(context.db, request), id);
      const cursor = parseLogCursor(request.headers['last-event-id'] ?? request.query.after);
      if (!wantsStream(request.headers.accept)) {
        const chunks: LogChunk[] = [];
        for (let page = await readLog(context, id, cursor); page.length > 0; page = await readLog(context, id, cursor))
          chunks.push(...page);
        return { chunks };
      }
      const watch = context.feed.watch(id, 'log');
      await follow(reply, watch, async () => {
        const chunks = await readLog(context, id, cursor);
        for (const chunk of chunks) await reply.sse.send({ id: formatLogCursor(cursor, chunk), event: 'log', data: chunk });
        if (chunks.length > 0) return 'more';
        return (await hasEnded(context, id)) ? 'end' : 'wait';
      });
      return reply;
    },
  );
}

function wantsStream(accept: string | undefined): boolean {
  return accept?.includes('text/event-stream') === true;
}

/** Sends until there is nothing more to come, the reader leaves, or the server stops. */
async function follow(
  reply: FastifyReply,
  watch: ReturnType<ServerContext['feed']['watch']>,
  step: () => Promise<'more' | 'wait' | 'end'>,
): Promise<void> {
  const gone = new AbortController();
  reply.sse.onClose(() => gone.abort());
  reply.sse.sendHeaders();
  try {
    let ending = false;
    while (!gone.signal.aborted) {
      const next = await step();
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

async function readLog(context: ServerContext, missionId: string, cursor: LogCursor): Promise<LogChunk[]> {
  const { turns, attempts, logChunks } = tables;
  const rows = await context.db
    .select({ turnId: attempts.turnId, attempt: attempts.attempt, length: attempts.logBytes })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .where(eq(turns.missionId, missionId))
    .orderBy(asc(turns.ordinal), asc(attempts.attempt));
  for (const row of rows) {
    const key = `${row.turnId}.${row.attempt}`;
    const from = cursor.get(key) ?? 0;
    if (from >= row.length) continue;
    const stored = await context.db
      .select()
      .from(logChunks)
      .where(and(eq(logChunks.turnId, row.turnId), eq(logChunks.attempt, row.attempt), gt(logChunks.at, from - 1)))
      .orderBy(asc(logChunks.at))
      .limit(LOG_PAGE);
    const last = stored.at(-1);
    if (last === undefined) continue;
    cursor.set(key, last.at + last.bytes.length);
    return stored.map((chunk) => ({ turnId: row.turnId, attempt: row.attempt, offset: chunk.at, data: chunk.bytes.toString('base64') }));
  }
  return [];
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

function formatLogCursor(cursor: LogCursor, chunk: LogChunk): string {
  const now = new Map(cursor).set(`${chunk.turnId}.${chunk.attempt}`, chunk.offset + Buffer.from(chunk.data, 'base64').length);
  return [...now].map(([key, offset]) => `${key}:${offset}`).join(',');
}
