import { createReadStream } from 'node:fs';
import { archivePaths, safeDownloadName } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { artifactViewSchema } from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { and, asc, eq } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { workspaceIdOf } from '../driver/mission-facts.ts';
import { artifactArchive } from './artifact-archive.ts';
import { findCaller } from './auth.ts';
import { ownMission } from './routes-missions.ts';

const params = z.object({ id: z.string().max(64) });

/** Outputs of a mission: the list, the bytes of one, all in one archive, and the pack of its delivered branch. */
export function artifactRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();

  app.get('/v1/missions/:id/artifacts', { schema: { params } }, async (request) => {
    const { id } = request.params;
    await ownMission(context, await findCaller(context.db, request), id);
    const rows = await context.db
      .select()
      .from(tables.artifacts)
      .where(eq(tables.artifacts.missionId, id))
      .orderBy(asc(tables.artifacts.createdAt), asc(tables.artifacts.name));
    return { artifacts: rows.map((row) => artifactViewSchema.parse(row)) };
  });

  app.get(
    '/v1/missions/:id/artifacts/:artifact',
    { schema: { params: params.extend({ artifact: z.string().max(64) }) } },
    async (request, reply) => {
      const row = await ownMission(context, await findCaller(context.db, request), request.params.id);
      const [artifact] = await context.db
        .select()
        .from(tables.artifacts)
        .where(and(eq(tables.artifacts.missionId, row.id), eq(tables.artifacts.id, request.params.artifact)));
      if (artifact === undefined)
        throw new CodedError('artifact_not_found', `mission ${row.id} has no artifact ${request.params.artifact}`, { id: row.id });
      const blob = await context.blobs.open(workspaceIdOf(row.workspaceId), artifact.digest);
      return await reply
        .header('content-type', artifact.mime)
        .header('content-length', blob.size)
        .header('x-content-type-options', 'nosniff')
        // What an agent made is never shown as a page of this server.
        .header('content-disposition', `attachment; filename="${safeDownloadName(artifact.name)}"`)
        .header('content-security-policy', "default-src 'none'; sandbox")
        .send(blob.stream);
    },
  );

  app.get('/v1/missions/:id/archive', { schema: { params } }, async (request, reply) => {
    const row = await ownMission(context, await findCaller(context.db, request), request.params.id);
    const found = await context.db
      .select({ artifact: tables.artifacts, phase: tables.phases.position })
      .from(tables.artifacts)
      .leftJoin(tables.phases, and(eq(tables.phases.missionId, tables.artifacts.missionId), eq(tables.phases.id, tables.artifacts.phaseId)))
      .where(eq(tables.artifacts.missionId, row.id))
      .orderBy(asc(tables.artifacts.createdAt), asc(tables.artifacts.name));
    const paths = archivePaths(found.map(({ artifact: { id, name, attempt }, phase }) => ({ id, name, attempt, phase })));
    const workspaceId = workspaceIdOf(row.workspaceId);
    const files = found.map(({ artifact: { bytes, createdAt, digest } }, index) => ({
      path: paths[index] ?? digest,
      bytes,
      at: createdAt,
      open: async () => (await context.blobs.open(workspaceId, digest)).stream,
    }));
    return await reply
      .header('content-type', 'application/x-tar')
      .header('x-content-type-options', 'nosniff')
      .header('content-disposition', `attachment; filename="${row.id}.tar"`)
      .send(artifactArchive(files));
  });

  app.get('/v1/missions/:id/pack', { schema: { params } }, async (request, reply) => {
    const row = await ownMission(context, await findCaller(context.db, request), request.params.id);
    const phases = await context.db
      .select()
      .from(tables.phases)
      .where(eq(tables.phases.missionId, row.id))
      .orderBy(asc(tables.phases.position));
    const delivery = phases.findLast((phase) => phase.delivery?.commit != null)?.delivery;
    if (delivery?.commit == null || delivery.branch === null) {
      throw new CodedError('nothing_delivered', `mission ${row.id} has delivered no commit`, {
        id: row.id,
        action: `See what happened with: firecrew show ${row.id}`,
      });
    }
    const source = row.spec.repository;
    const known = source.kind === 'upload' ? [source.head] : [];
    const repository = await context.repositories.open(row.id);
    const { commit, branch } = delivery;
    const scratch = await context.repositories.keepScratch();
    const file = scratch.path('delivery.pack');
    const bytes = await repository.packFor(commit, { not: known }, file).catch(async (error: unknown) => {
      await scratch.remove();
      throw error;
    });
    const stream = createReadStream(file);
    stream.once('close', () => void scratch.remove());
    return await reply
      .header('content-type', 'application/x-git-pack')
      .header('content-length', bytes)
      .header('x-firecrew-commit', commit)
      .header('x-firecrew-branch', branch)
      .header('x-firecrew-base', row.base?.commit ?? '')
      .header('x-firecrew-synthetic', String(row.base?.synthetic ?? false))
      .header('x-firecrew-awaiting-approval', String(delivery.pushed === 'awaiting_approval'))
      .send(stream);
  });
}
