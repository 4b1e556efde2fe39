import { createPublicKey } from 'node:crypto';
import { backendAvailability } from '@firecrew/backend';
import { CodedError, newId } from '@firecrew/base';
import type { UnfitNode } from '@firecrew/placement';
import {
  apiPaths,
  backendListSchema,
  fleetViewSchema,
  joinReplySchema,
  joinRequestSchema,
  joinTokenReplySchema,
  type UnfitCause,
} from '@firecrew/protocol';
import { inTransaction, tables } from '@firecrew/store';
import { and, eq, gt, isNull, sql } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { surveyFleet } from '../driver/place-turns.ts';
import { findCaller, hashToken, newToken } from './auth.ts';

/** How long a join token can be used. */
export const JOIN_TOKEN_TTL_MS = 3_600_000;

/** The fleet as the placer sees it, and how a node becomes part of it. */
export function fleetRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();

  app.get('/v1/fleet', { schema: { response: { 200: fleetViewSchema } } }, async (request) => {
    await findCaller(context.db, request);
    const { survey, nodes } = await surveyFleet(context);
    const views = nodes.map(({ row, record }) => {
      const fit = survey.ranked.find((item) => item.id === row.id);
      const unfit = survey.unfit.find((item) => item.id === row.id);
      const link = context.nodes.get(row.id);
      const line =
        fit === undefined
          ? (unfit?.detail ?? 'not judged')
          : `${fit.slots} free, ${fit.committed} committed, ${fit.usedMib} of ${fit.totalMib} MiB used`;
      return {
        id: row.id,
        name: row.name,
        online: link !== undefined,
        draining: row.draining,
        healthAgeMs: link?.healthAtMs == null ? null : Math.round(context.clock() - link.healthAtMs),
        health: link?.health ?? row.health,
        capabilities: link?.capabilities ?? row.capabilities,
        vms: link?.vms ?? null,
        verdict: {
          fit: fit !== undefined,
          freeSlots: fit?.slots ?? 0,
          committed: record.reserved.length,
          line,
          ...(unfit === undefined ? {} : { unfit: causeOf(unfit) }),
        },
      };
    });
    return { freeSlots: survey.totalFreeSlots, nodes: views };
  });

  app.get(apiPaths.backends, { schema: { response: { 200: backendListSchema } } }, async (request) => {
    await findCaller(context.db, request);
    const { nodes } = await surveyFleet(context);
    const known = nodes.map(({ row: { id, name, capabilities } }) => {
      const link = context.nodes.get(id);
      return { id, name, online: link !== undefined, capabilities: link?.capabilities ?? capabilities };
    });
    const backends = context.policy.backends.map((backend) => {
      const { name, label, image, drivers, hosts, modelRoute } = backend;
      return { name, label, image, drivers, hosts, modelRoute, ...backendAvailability(backend, known) };
    });
    return { backends };
  });

  app.post('/v1/join-tokens', { schema: { response: { 201: joinTokenReplySchema } } }, async (request, reply) => {
    await findCaller(context.db, request);
    const token = newToken();
    // The database's clock, here and where a node joins: servers whose clocks differ would disagree about the end.
    const made = await context.db
      .insert(tables.joinTokens)
      .values({ id: newId('token'), hash: hashToken(token), expiresAt: sql`now() + ${JOIN_TOKEN_TTL_MS} * interval '1 millisecond'` })
      .returning({ expiresAt: tables.joinTokens.expiresAt });
    const [expiresAt = ''] = made.map((row) => row.expiresAt.toISOString());
    return await reply.code(201).send({ token, expiresAt });
  });

  app.post('/v1/node/join', { schema: { body: joinRequestSchema, response: { 201: joinReplySchema } } }, async (request, reply) => {
    const { token, name, publicKey } = request.body;
    demandEd25519(publicKey);
    const nodeId = newId('node');
    await inTransaction(context.db, async (tx) => {
      // The claim and the node are one transaction: a token joins one node, whoever is first.
      const claimed = await tx
        .update(tables.joinTokens)
        .set({ usedAt: sql`now()`, usedBy: nodeId })
        .where(
          and(eq(tables.joinTokens.hash, hashToken(token)), isNull(tables.joinTokens.usedAt), gt(tables.joinTokens.expiresAt, sql`now()`)),
        )
        .returning({ id: tables.joinTokens.id });
      if (claimed.length === 0)
        throw new CodedError('join_token_invalid', 'the join token is unknown, used or expired', {
          action: 'Ask the operator for a new one: firecrew node token',
        });
      const taken = await tx.select({ id: tables.nodes.id }).from(tables.nodes).where(eq(tables.nodes.name, name));
      if (taken.length > 0)
        throw new CodedError('node_name_taken', `there is a node called ${name} already`, {
          id: name,
          action: 'Choose another name with --name.',
        });
      await tx.insert(tables.nodes).values({ id: nodeId, name, publicKey });
    });
    return await reply.code(201).send({ nodeId });
  });

  app.post(
    '/v1/nodes/:id/drain',
    { schema: { params: z.object({ id: z.string().max(64) }), body: z.strictObject({ draining: z.boolean() }) } },
    async (request) => {
      await findCaller(context.db, request);
      const rows = await context.db
        .update(tables.nodes)
        .set({ draining: request.body.draining })
        .where(eq(tables.nodes.id, request.params.id))
        .returning({ id: tables.nodes.id });
      if (rows.length === 0) throw new CodedError('not_found', `there is no node ${request.params.id}`, { id: request.params.id });
      return { id: request.params.id, draining: request.body.draining };
    },
  );
}

/** The reason with its numbers, without what the view says of the node itself. */
function causeOf({
  fit: _,
  id: _id,
  name: _name,
  capable: _capable,
  lacksRoute: _lacks,
  awaitsImage: _awaits,
  detail: _detail,
  ...cause
}: UnfitNode): UnfitCause {
  return cause;
}

function demandEd25519(publicKey: string): void {
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType === 'ed25519') return;
  } catch {
    // Told below, like a key of another kind.
  }
  throw new CodedError('bad_request', 'publicKey must be an Ed25519 key, SPKI DER, base64');
}
