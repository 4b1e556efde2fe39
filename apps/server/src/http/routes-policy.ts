import { describeReach } from '@firecrew/policy-file';
import { askPolicySchema, policyAskedSchema, policyExplanationSchema, policyPartSchema, policyVerdictSchema } from '@firecrew/protocol';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { judgeAsked } from '../policy/asked-warnings.ts';
import { checkLearning } from '../policy/check-learning.ts';
import { explainMission } from '../policy/explain-mission.ts';
import { reachRequestOf } from '../policy/turn-egress.ts';
import { findCaller } from './auth.ts';
import { ownMission } from './routes-missions.ts';

const params = z.object({ id: z.string().max(64) });
const question = z.object({
  host: z.string().max(1_000),
  port: z.coerce.number().int().min(1).max(65_535).default(443),
  part: policyPartSchema.default('run'),
});

/** What the policy says about a mission: one target, or all that its audit holds. Nothing is run or looked up. */
export function policyRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();

  app.post('/v1/policy/ask', { schema: { body: askPolicySchema, response: { 200: policyAskedSchema } } }, async (request) => {
    const caller = await findCaller(context.db, request);
    const { backend, egress, learn } = request.body;
    checkLearning(context.policy, { learn, ofSeat: caller.seat !== undefined, includedSecrets: [] });
    return { warnings: judgeAsked(context.policy, { agent: { backend }, egress, learn }) };
  });

  app.get(
    '/v1/missions/:id/policy/check',
    { schema: { params, querystring: question, response: { 200: policyVerdictSchema } } },
    async (request) => {
      const { spec } = await ownMission(context, await findCaller(context.db, request), request.params.id);
      const { policy, origin } = context.policy;
      return { ...describeReach({ policy, request: reachRequestOf(context.policy, spec), ...request.query }, origin.source) };
    },
  );

  app.get('/v1/missions/:id/policy', { schema: { params, response: { 200: policyExplanationSchema } } }, async (request) => {
    const { id, spec } = await ownMission(context, await findCaller(context.db, request), request.params.id);
    return await explainMission(context, id, reachRequestOf(context.policy, spec));
  });
}
