import { once } from 'node:events';
import { Readable } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { uploadReplySchema } from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { and, asc, eq } from 'drizzle-orm';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { workspaceIdOf } from '../driver/mission-facts.ts';
import { type AttemptGrant, bearerOf, findCaller } from './auth.ts';

/** Bytes of one piece of a log. */
export const MAX_LOG_PIECE_BYTES = 1024 * 1024;

const attemptParams = z.object({ turn: z.string().max(64), attempt: z.coerce.number().int().min(1) });
const blobParams = attemptParams.extend({ digest: z.string().regex(/^[0-9a-f]{64}$/) });

/** Bytes into and out of the blob store: uploads of callers, and the data calls of nodes. */
export function uploadRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();
  // Bodies are streams here, never buffered; each handler sets its own bound.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));

  app.post('/v1/uploads', { schema: { response: { 200: uploadReplySchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    const expected = request.headers['x-firecrew-digest'];
    const options = { maxBytes: context.config.limits.uploadBytes, ...(typeof expected === 'string' ? { expectDigest: expected } : {}) };
    return await context.blobs.put(workspaceIdOf(caller.workspaceId), bodyOf(request), options);
  });

  app.get('/v1/node/turns/:turn/:attempt/blobs/:digest', { schema: { params: blobParams } }, async (request, reply) => {
    const grant = grantOf(context, request, request.params);
    await demandOpen(context, grant);
    if (!grant.digests.includes(request.params.digest))
      throw new CodedError('blob_not_found', `blob ${request.params.digest} is not an input of this attempt`);
    const blob = await context.blobs.open(workspaceIdOf(grant.workspaceId), request.params.digest);
    return await reply.header('content-type', 'application/octet-stream').header('content-length', blob.size).send(blob.stream);
  });

  app.put(
    '/v1/node/turns/:turn/:attempt/blobs/:digest',
    { schema: { params: blobParams, response: { 200: uploadReplySchema } } },
    async (request) => {
      const grant = grantOf(context, request, request.params);
      await demandOpen(context, grant);
      return await context.blobs.put(workspaceIdOf(grant.workspaceId), bodyOf(request), {
        expectDigest: request.params.digest,
        maxBytes: context.config.limits.uploadBytes,
      });
    },
  );

  app.post(
    '/v1/node/turns/:turn/:attempt/log',
    { schema: { params: attemptParams, querystring: z.object({ offset: z.coerce.number().int().min(0) }) } },
    async (request, reply) => {
      const grant = grantOf(context, request, request.params);
      const bytes = await readPiece(bodyOf(request));
      const result = await context.store.appendLog(
        { turnId: grant.turnId, attempt: grant.attempt, epoch: grant.epoch },
        request.query.offset,
        bytes,
      );
      if (result.ok) return { length: result.length };
      return await reply.code(409).send({
        error: { code: result.code, message: `the log of ${grant.turnId}.${grant.attempt} holds ${result.length} bytes` },
        length: result.length,
      });
    },
  );
}

function grantOf(context: ServerContext, request: FastifyRequest, params: { turn: string; attempt: number }): AttemptGrant {
  const grant = context.tokens.read(bearerOf(request));
  if (grant.turnId !== params.turn || grant.attempt !== params.attempt)
    throw new CodedError('forbidden', 'the token is for another attempt');
  return grant;
}

/** A fenced attempt neither gets inputs nor hands in results. */
async function demandOpen(context: ServerContext, grant: AttemptGrant): Promise<void> {
  const { attempts, turns } = tables;
  const [row] = await context.db
    .select({ state: attempts.state, newest: turns.attempt })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .where(and(eq(attempts.turnId, grant.turnId), eq(attempts.attempt, grant.attempt), eq(attempts.epoch, grant.epoch)))
    .orderBy(asc(attempts.attempt));
  if (row === undefined || row.state === 'ended' || row.newest !== grant.attempt) {
    throw new CodedError('attempt_stale', `attempt ${grant.turnId}.${grant.attempt} is over`, { id: grant.turnId });
  }
}

function bodyOf(request: FastifyRequest): Readable {
  const { body } = request;
  if (body instanceof Readable) return body;
  throw new CodedError('bad_upload', 'the request has no body', {
    action: 'Send the bytes with a content type, such as application/octet-stream.',
  });
}

async function readPiece(stream: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stream) {
    const bytes = Buffer.from(part as Uint8Array);
    size += bytes.length;
    if (size > MAX_LOG_PIECE_BYTES) {
      stream.destroy();
      await once(stream, 'close');
      throw new CodedError('too_large', `a piece of a log has at most ${MAX_LOG_PIECE_BYTES} bytes`);
    }
    parts.push(bytes);
  }
  return Buffer.concat(parts);
}
