import { CodedError } from '@firecrew/base';
import {
  linkSeatRequestSchema,
  mintedSeatKeySchema,
  mintSeatKeyRequestSchema,
  revokeSeatKeyRequestSchema,
  seatDetailSchema,
  seatListSchema,
  seatPaths,
  seatRevokedSchema,
  seatViewSchema,
  whoamiSchema,
} from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { eq } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { addSeatKey, linkSeat, listSeats, revokeSeatKey, showSeat, unlinkSeat } from '../seats.ts';
import { findCaller, hashToken, newToken } from './auth.ts';
import { mayUse } from './route-access.ts';

const params = z.object({ id: z.string().max(64) });

/** Seats and their keys, and whom a token stands for. */
export function seatRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();

  app.get(seatPaths.whoami, { schema: { response: { 200: whoamiSchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    const [workspace] = await context.db.select().from(tables.workspaces).where(eq(tables.workspaces.id, caller.workspaceId));
    if (workspace === undefined) throw new CodedError('settings_unreadable', 'the workspace of the token cannot be read');
    const { tokenId, name, role, seat } = caller;
    return {
      tokenId,
      name,
      role,
      workspace: { id: workspace.id, name: workspace.name },
      seat: seat ?? null,
      mayManageSeats: mayUse(role, 'operator'),
    };
  });

  app.get(seatPaths.seats, { schema: { response: { 200: seatListSchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    return { seats: await listSeats(context, caller.workspaceId) };
  });

  app.get(seatPaths.seat(':id'), { schema: { params, response: { 200: seatDetailSchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    return await showSeat(context, caller.workspaceId, request.params.id);
  });

  app.post(seatPaths.seats, { schema: { body: linkSeatRequestSchema, response: { 200: seatViewSchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    return await linkSeat(context, caller.workspaceId, request.body);
  });

  app.post(seatPaths.unlink(':id'), { schema: { params, response: { 200: seatRevokedSchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    return await unlinkSeat(context, caller.workspaceId, request.params.id);
  });

  app.post(
    seatPaths.keys(':id'),
    { schema: { params, body: mintSeatKeyRequestSchema, response: { 201: mintedSeatKeySchema } } },
    async (request, reply) => {
      const { workspaceId } = await findCaller(context.db, request);
      const seatId = request.params.id;
      const key = newToken('seat');
      const { id: keyId, createdAt } = await addSeatKey(context, { workspaceId, seatId, name: request.body.name, hash: hashToken(key) });
      return await reply.code(201).header('cache-control', 'no-store').send({ key, keyId, seatId, workspaceId, createdAt });
    },
  );

  app.post(
    seatPaths.revoke(':id'),
    { schema: { params, body: z.preprocess((body) => body ?? {}, revokeSeatKeyRequestSchema), response: { 200: seatRevokedSchema } } },
    async (request) => {
      const { workspaceId } = await findCaller(context.db, request);
      return await revokeSeatKey(context, { workspaceId, keyId: request.params.id, successor: request.body.successor });
    },
  );
}
