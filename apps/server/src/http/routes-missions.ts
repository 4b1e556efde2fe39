import { findBackend } from '@firecrew/backend';
import { CodedError, newId } from '@firecrew/base';
import { meetsFloor } from '@firecrew/placement';
import {
  approveRequestSchema,
  type CreateMission,
  createMissionSchema,
  missionViewSchema,
  type PolicyWarning,
  retryReplySchema,
  retryRequestSchema,
} from '@firecrew/protocol';
import { type Transaction, tables } from '@firecrew/store';
import { and, desc, eq } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { approveDelivery } from '../delivery/approve-delivery.ts';
import { makeBase } from '../delivery/make-base.ts';
import { judgeAsked, noticesOf } from '../policy/asked-warnings.ts';
import { checkLearning, learningNotice } from '../policy/check-learning.ts';
import { type Caller, findCaller } from './auth.ts';
import { missionSummary, missionView } from './mission-view.ts';

const params = z.object({ id: z.string().max(64) });
const PAGE_MAX = 500;

/** A body that may be left out altogether. */
function optionalBody<T extends z.ZodType<object>>(schema: T) {
  return z.preprocess((body) => body ?? {}, schema);
}

/** Missions: create, list, show, cancel, retry, approve. */
export function missionRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();

  app.post('/v1/missions', { schema: { body: createMissionSchema, response: { 201: missionViewSchema } } }, async (request, reply) => {
    const caller = await findCaller(context.db, request);
    const id = newId('mission');
    const warnings = checkRequest(context, caller, request.body, id);
    const notices = [...learningNotice(context.policy, request.body.learn), ...noticesOf(warnings)];
    const base = await makeBase(context, id, caller.workspaceId, request.body);
    const seat = caller.seat === undefined ? {} : { seat: { ...caller.seat, keyId: caller.tokenId } };
    await context.store.create({ id, workspaceId: caller.workspaceId, spec: request.body, base, notices, ...seat });
    const launched = await context.store.apply(id, { type: 'launch' });
    // any code: a refusal of the mission's machine, listed as `RefusalCode`
    if (!launched.ok) throw new CodedError(launched.code, `mission ${id} could not be launched: ${launched.code}`, { id });
    return await reply.code(201).send(await missionView(context, id));
  });

  app.get(
    '/v1/missions',
    { schema: { querystring: z.object({ limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(50) }) } },
    async (request) => {
      const caller = await findCaller(context.db, request);
      const rows = await context.db
        .select()
        .from(tables.missions)
        .where(missionsOf(caller))
        .orderBy(desc(tables.missions.createdAt))
        .limit(request.query.limit);
      return { missions: await Promise.all(rows.map((row) => missionSummary(context, row))) };
    },
  );

  app.get('/v1/missions/:id', { schema: { params, response: { 200: missionViewSchema } } }, async (request) => {
    await ownMission(context, await findCaller(context.db, request), request.params.id);
    return await missionView(context, request.params.id);
  });

  app.post('/v1/missions/:id/cancel', { schema: { params } }, async (request) => {
    const { id } = request.params;
    await ownMission(context, await findCaller(context.db, request), id);
    const result = await context.store.apply(id, { type: 'cancel' });
    // any code: a refusal of the mission's machine, listed as `RefusalCode`
    if (!result.ok) throw new CodedError(result.code, `mission ${id} has ended already`, { id });
    return await missionView(context, id);
  });

  app.post(
    '/v1/missions/:id/retry',
    { schema: { params, body: optionalBody(retryRequestSchema), response: { 200: retryReplySchema } } },
    async (request) => {
      const { id } = request.params;
      await ownMission(context, await findCaller(context.db, request), id);
      const { phaseId } = request.body;
      const input = { type: 'retry', ...(phaseId === undefined ? {} : { phaseId }) } as const;
      const result = await context.store.apply(id, input, (tx) => demandSeatLives(tx, id));
      if (!result.ok)
        // any code: a refusal of the mission's machine, listed as `RefusalCode`
        throw new CodedError(result.code, `mission ${id} cannot be retried: ${result.code.replaceAll('_', ' ')}`, {
          id,
          action: 'Only a failed phase of a running or failed mission can be retried.',
        });
      const fact = result.facts.find((item) => item.kind === 'mission.retried');
      return { phaseId: fact?.phaseId ?? '', reopened: fact?.reopened ?? 0 };
    },
  );

  app.post('/v1/missions/:id/approve', { schema: { params, body: optionalBody(approveRequestSchema) } }, async (request) => {
    const caller = await findCaller(context.db, request);
    await ownMission(context, caller, request.params.id);
    await approveDelivery(context, request.params.id, request.body.phaseId, caller.name);
    return await missionView(context, request.params.id);
  });
}

/** The missions that a caller may know of: those of the workspace, and for a seat its own alone. */
function missionsOf({ workspaceId, seat }: Caller) {
  const ofWorkspace = eq(tables.missions.workspaceId, workspaceId);
  return seat === undefined ? ofWorkspace : and(ofWorkspace, eq(tables.missions.seatId, seat.id));
}

/** The mission's row when the caller may know of it; another one is not found, never forbidden. */
export async function ownMission(context: ServerContext, caller: Caller, id: string) {
  const [row] = await context.db
    .select()
    .from(tables.missions)
    .where(and(eq(tables.missions.id, id), missionsOf(caller)));
  if (row === undefined)
    throw new CodedError('mission_not_found', `mission ${id} does not exist`, { id, action: 'List missions with: firecrew missions' });
  return row;
}

/** Nothing starts again under a seat or key that was revoked. Asked with the mission's row locked. */
async function demandSeatLives(tx: Transaction, id: string): Promise<void> {
  const [row] = await tx.select({ seatRevoked: tables.missions.seatRevoked }).from(tables.missions).where(eq(tables.missions.id, id));
  if (row?.seatRevoked !== true) return;
  throw new CodedError('seat_revoked', `the seat or key that mission ${id} works under was revoked`, {
    id,
    action: 'Create the mission anew, under a key that is accepted.',
  });
}

function checkRequest(context: ServerContext, caller: Caller, body: CreateMission, id: string): PolicyWarning[] {
  findBackend(body.agent.backend, context.policy.backends);
  const includedSecrets = body.repository.kind === 'upload' ? body.repository.includedSecrets : [];
  checkLearning(context.policy, { learn: body.learn, ofSeat: caller.seat !== undefined, includedSecrets });
  const warnings = judgeAsked(context.policy, body, id);
  const { driverFloor } = context.config;
  if (body.driver !== undefined && !meetsFloor(body.driver, driverFloor)) {
    throw new CodedError('driver_below_floor', `the driver ${body.driver} isolates less than ${driverFloor}, which this server demands`);
  }
  if (body.egress.addressRules.length > 0 && caller.role !== 'operator')
    throw new CodedError('forbidden', 'only an operator may name addresses that are not public');
  if (body.gate.mode === 'same-vm') throw new CodedError('bad_request', 'gate.mode same-vm is not allowed by the policy of this server');
  return warnings;
}
