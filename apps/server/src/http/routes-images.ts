import { CodedError } from '@firecrew/base';
import { MAX_OFFERED_IMAGES, nodeDataPaths, offeredImagesSchema } from '@firecrew/protocol';
import { type ArtifactDigest, ArtifactNames, ImageStore, isArtifactName } from '@firecrew/rootfs';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';
import { findNode } from './auth.ts';
import { decideRange } from './decide-range.ts';
import { ImageTransfers } from './image-transfers.ts';

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const wanted = z
  .string()
  .refine((text) => digest.safeParse(text).success || isArtifactName(text), 'must be a digest or a name of an image');

/** Images, kernels and payloads for the nodes of this server: names, manifests, and files by digest. */
export function imageRoutes(root: FastifyInstance, context: ServerContext): void {
  const app = root.withTypeProvider<ZodTypeProvider>();
  const folder = context.config.images;
  const transfers = new ImageTransfers();

  app.get(nodeDataPaths.images, { schema: { response: { 200: offeredImagesSchema } } }, async (request) => {
    await findNode(context, request);
    const all = await namesOf(folder).list();
    if (all.size > MAX_OFFERED_IMAGES)
      throw new CodedError('too_large', `the image store has more than ${MAX_OFFERED_IMAGES} names`, {
        action: 'Remove names that no node uses with firecrew image remove.',
      });
    return { images: [...all].map(([name, id]) => ({ name, id })) };
  });

  app.get(nodeDataPaths.imageManifest(':wanted'), { schema: { params: z.object({ wanted }) } }, async (request, reply) => {
    await findNode(context, request);
    const { wanted: text } = request.params;
    const id = digest.safeParse(text).success ? idOf(text) : await namesOf(folder).get(text);
    if (id === undefined) throw notOffered(text);
    const { manifestBytes } = await storeOf(folder).find(id);
    return await reply.header('content-type', 'application/octet-stream').header('x-firecrew-image', id).send(manifestBytes);
  });

  app.get(
    nodeDataPaths.imageFile(':id', ':digest'),
    { schema: { params: z.object({ id: digest, digest }) } },
    async (request: FastifyRequest<{ Params: { id: string; digest: string } }>, reply) => {
      const node = await findNode(context, request);
      const release = transfers.begin(node.id);
      reply.raw.once('close', release);
      return await sendFile(storeOf(folder), request, reply);
    },
  );
}

type FileRequest = FastifyRequest<{ Params: { id: string; digest: string } }>;

async function sendFile(store: ImageStore, request: FileRequest, reply: FastifyReply): Promise<FastifyReply> {
  const id = idOf(request.params.id);
  const { handle, sizeBytes } = await store.openFile(id, request.params.digest);
  const range = decideRange(request.headers.range, sizeBytes);
  if (range.verdict === 'refused') {
    await handle.close();
    reply.header('content-range', `bytes */${sizeBytes}`);
    throw new CodedError('image_range_wrong', `the file has ${sizeBytes} bytes, and no part ${request.headers.range?.slice(0, 100)}`, {
      id,
    });
  }
  reply.header('content-type', 'application/octet-stream').header('accept-ranges', 'bytes');
  if (range.verdict === 'whole') return await reply.header('content-length', sizeBytes).send(handle.createReadStream());
  const { first, last } = range;
  return await reply
    .code(206)
    .header('content-range', `bytes ${first}-${last}/${sizeBytes}`)
    .header('content-length', last - first + 1)
    .send(handle.createReadStream({ start: first, end: last }));
}

function idOf(hex: string): ArtifactDigest {
  return `sha256:${hex}`;
}

function storeOf(folder: string | null): ImageStore {
  return new ImageStore(demandFolder(folder));
}

function namesOf(folder: string | null): ArtifactNames {
  return new ArtifactNames(demandFolder(folder));
}

function demandFolder(folder: string | null): string {
  if (folder !== null) return folder;
  throw new CodedError('image_unknown', 'this server offers no images', {
    action: 'Let `images` of its configuration name an image store.',
  });
}

function notOffered(wanted: string): CodedError {
  return new CodedError('image_unknown', `the image store of this server has nothing called ${wanted}`, {
    id: wanted,
    action: 'List what it holds with firecrew image list, on the server.',
  });
}
