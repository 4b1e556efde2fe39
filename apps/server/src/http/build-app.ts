import { fastifySSE } from '@fastify/sse';
import fastifySwagger from '@fastify/swagger';
import { CodedError } from '@firecrew/base';
import { GENERATION, MAX_JSON_BODY_BYTES, MIN_GENERATION, type ServerInfo } from '@firecrew/protocol';
import { sql } from 'drizzle-orm';
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { jsonSchemaTransform, serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import type { ServerContext } from '../context.ts';
import { checkHostAndOrigin, findCaller } from './auth.ts';
import { answerError } from './errors.ts';
import { demandDecision } from './route-access.ts';
import { artifactRoutes } from './routes-artifacts.ts';
import { fleetRoutes } from './routes-fleet.ts';
import { followRoutes } from './routes-follow.ts';
import { imageRoutes } from './routes-images.ts';
import { missionRoutes } from './routes-missions.ts';
import { policyRoutes } from './routes-policy.ts';
import { seatRoutes } from './routes-seats.ts';
import { uploadRoutes } from './routes-uploads.ts';

/** Names under which a loopback server may be asked. */
const HOST_NAMES = ['localhost'];

/** The HTTP face: every route, its checks, and errors with code and action. */
export async function buildApp(context: ServerContext): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: context.log as FastifyBaseLogger,
    bodyLimit: MAX_JSON_BODY_BYTES,
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: 0,
    forceCloseConnections: true,
  });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  const names = [...HOST_NAMES, ...context.config.hostNames.map((name) => name.toLowerCase())];
  app.addHook('onRequest', async (request) => checkHostAndOrigin(request, names));
  app.addHook('onRoute', ({ method, url }) => demandDecision(method, url));
  app.setErrorHandler(async (error, request, reply) => {
    const { status, body } = answerError(error, request.log);
    return await reply.code(status).send(body);
  });
  app.setNotFoundHandler(async (request, reply) => {
    return await reply
      .code(404)
      .send({ error: { code: 'not_found', message: `there is nothing at ${request.method} ${request.url.split('?')[0]?.slice(0, 200)}` } });
  });
  await app.register(fastifySwagger, {
    openapi: { info: { title: 'Firecrew', version: context.version } },
    transform: jsonSchemaTransform,
  });
  await app.register(fastifySSE, { heartbeatInterval: 15_000 });
  await app.register(async (scope) => healthRoutes(scope, context));
  await app.register(async (scope) => missionRoutes(scope, context));
  await app.register(async (scope) => policyRoutes(scope, context));
  await app.register(async (scope) => followRoutes(scope, context));
  await app.register(async (scope) => artifactRoutes(scope, context));
  await app.register(async (scope) => seatRoutes(scope, context));
  await app.register(async (scope) => fleetRoutes(scope, context));
  await app.register(async (scope) => imageRoutes(scope, context));
  await app.register(async (scope) => uploadRoutes(scope, context));
  return app;
}

function healthRoutes(app: FastifyInstance, context: ServerContext): void {
  const { homeId } = context.config;
  app.get('/healthz', async () => ({ ok: true, homeId, checks: {} }));
  app.get('/readyz', async (_request, reply) => {
    const database = await context.db.execute(sql`select 1`).then(
      () => 'ok',
      () => 'unreachable',
    );
    return await reply.code(database === 'ok' ? 200 : 503).send({ ok: database === 'ok', homeId, checks: { database } });
  });
  app.get('/v1/info', async (request): Promise<ServerInfo> => {
    await findCaller(context.db, request);
    return { version: context.version, generation: GENERATION, minGeneration: MIN_GENERATION.httpApi, homeId, epoch: context.epoch };
  });
  app.get('/v1/openapi.json', async (request) => {
    await findCaller(context.db, request);
    if (!('swagger' in app)) throw new CodedError('unavailable', 'the API description is not ready');
    return app.swagger();
  });
  app.get('/metrics', async (request, reply) => {
    await findCaller(context.db, request);
    return await reply.header('content-type', 'text/plain; version=0.0.4').send(await metrics(context));
  });
}

/** Gauges read from the state; mission ids are kept out of labels. */
async function metrics(context: ServerContext): Promise<string> {
  const states = await context.db.execute<{ state: string; n: string }>(
    sql`select state, count(*)::text as n from missions group by state`,
  );
  const open = await context.db.execute<{ n: string }>(sql`select count(*)::text as n from attempts where state <> 'ended'`);
  const lines = ['# HELP firecrew_missions Missions by state.', '# TYPE firecrew_missions gauge'];
  for (const row of states.rows) lines.push(`firecrew_missions{state="${row.state}"} ${row.n}`);
  lines.push(
    '# HELP firecrew_attempts_open Attempts that have not ended.',
    '# TYPE firecrew_attempts_open gauge',
    `firecrew_attempts_open ${open.rows[0]?.n ?? '0'}`,
  );
  lines.push(
    '# HELP firecrew_nodes_connected Nodes whose link ends here.',
    '# TYPE firecrew_nodes_connected gauge',
    `firecrew_nodes_connected ${context.nodes.all().length}`,
  );
  const { results, fileIsGood } = context.policy;
  lines.push(
    '# HELP firecrew_policy_reloads_total Changes of the policy file by what became of them.',
    '# TYPE firecrew_policy_reloads_total counter',
    ...(['replaced', 'refused'] as const).map((result) => `firecrew_policy_reloads_total{result="${result}"} ${results.get(result) ?? 0}`),
    '# HELP firecrew_policy_file_good Whether the policy file could be used at the last look.',
    '# TYPE firecrew_policy_file_good gauge',
    `firecrew_policy_file_good ${fileIsGood ? 1 : 0}`,
    ...context.egress.lines(),
  );
  return `${lines.join('\n')}\n`;
}
