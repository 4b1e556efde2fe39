import * as z from 'zod';
import { attemptResultSchema } from './outcome.ts';
import { turnEventSchema } from './turn-event.ts';
import { inputBlobSchema, turnEgressSchema, turnSpecSchema } from './turn-spec.ts';
import {
  attemptSchema,
  countSchema,
  driverSchema,
  epochSchema,
  imageIdSchema,
  imageNameSchema,
  imageReferenceSchema,
  isolationSchema,
  nodeIdSchema,
  turnIdSchema,
} from './values.ts';

/** Bytes of one node-link message. */
export const MAX_NODE_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Turn events in one message. */
export const MAX_EVENTS_PER_MESSAGE = 256;
/** Period of the health report. */
export const HEALTH_EVERY_MS = 5_000;
/** Period of the lease renewals. */
export const LEASE_RENEW_EVERY_MS = 20_000;
/** Term of a lease. */
export const LEASE_TTL_MS = 300_000;
/** Period of the capability report; it is also sent on connect and on a change. */
export const CAPABILITY_REPORT_EVERY_MS = 900_000;

const key = { turnId: turnIdSchema, attempt: attemptSchema, epoch: epochSchema };

export const nodeHealthSchema = z.object({
  memoryTotalMib: z.int().min(0),
  memoryUsedMib: z.int().min(0),
  diskFreeMib: z.int().min(0).nullable().describe('Null where it could not be read.'),
  cpuPercent: z.number().min(0).max(100).nullable(),
  load1: z.number().nullable(),
});
export type NodeHealth = z.infer<typeof nodeHealthSchema>;

/** VMs that one report names. */
export const MAX_NODE_VMS = 4096;

/** A VM, or sandbox of the process driver, that is on a node: from before its boot until nothing of it is left. */
export const nodeVmSchema = z.object({
  turnId: turnIdSchema,
  attempt: attemptSchema,
  name: z.string().max(32).describe('Its own within the attempt, which has one at a time: round, purpose.'),
  kind: z.enum(['agent', 'check', 'layer', 'rescue']).describe('What it is for; a rescue VM reads the disk of one that died.'),
  demand: z
    .object({ driver: driverSchema, memoryMib: z.int().min(1).max(4_194_304), diskMib: z.int().min(1).max(67_108_864) })
    .nullable()
    .describe('What it was given; null where the node cannot read that any more.'),
});
export type NodeVm = z.infer<typeof nodeVmSchema>;

/** All that are on a node, or why it cannot say: that is never none. */
export const nodeVmsSchema = z.discriminatedUnion('status', [
  z.object({ status: z.literal('known'), vms: z.array(nodeVmSchema).max(MAX_NODE_VMS) }),
  z.object({ status: z.literal('unknown'), error: z.string().max(500) }),
]);
export type NodeVms = z.infer<typeof nodeVmsSchema>;

const comingSchema = z.boolean().optional().describe('True where the node is getting what it lacks; a turn that needs it may wait.');

/** A complete view that replaces the one before; every key is always present. */
export const nodeCapabilitiesSchema = z.object({
  drivers: z.array(
    z.object({
      driver: driverSchema,
      isolation: isolationSchema,
      backends: z.array(z.string()).describe('Backends this node can boot with the driver.'),
      detail: z.string().describe('Version, or why the isolation is what it is.'),
      lacking: z
        .array(z.object({ backend: z.string().max(64), detail: z.string().max(2000), coming: comingSchema }))
        .max(64)
        .optional()
        .describe('Backends with images that it cannot boot now, and why; always present from nodes that know the field.'),
    }),
  ),
  unavailable: z
    .array(z.object({ driver: driverSchema, detail: z.string().max(2000), coming: comingSchema }))
    .optional()
    .describe('Drivers that are configured and cannot be used now, and why; always present from nodes that know the field.'),
  modelRoutes: z
    .array(z.object({ backend: z.string().max(64), format: z.string().max(64) }))
    .max(64)
    .optional()
    .describe(
      'Backends that the node has a model route for, and its wire format; guests that nothing isolates have none. Always present from nodes that know the field.',
    ),
  kvm: z.boolean(),
  cpus: z.int().min(1),
  platform: z.string(),
  agentVersion: z.string(),
});
export type NodeCapabilities = z.infer<typeof nodeCapabilitiesSchema>;

/** Node agent -> server. */
export const nodeMessageSchema = z.discriminatedUnion('t', [
  z.object({
    t: z.literal('hello'),
    generation: z.int(),
    minGeneration: z.int(),
    nodeId: nodeIdSchema,
    signature: z.string().max(200).describe('Ed25519 over `firecrew-node-hello\\n<nonce>\\n<nodeId>\\n<bootId>`, base64.'),
    bootId: z.string().max(64),
    version: z.string().max(64),
    turns: z.array(
      z.object({
        ...key,
        state: z.enum(['running', 'ended']),
        acked: countSchema.describe('Last event the server acknowledged, as far as the node knows.'),
      }),
    ),
  }),
  z.object({
    t: z.literal('health'),
    health: nodeHealthSchema,
    vms: nodeVmsSchema.optional().describe('Absent: the node is one that does not say, and its open attempts are all that is known.'),
  }),
  z.object({ t: z.literal('capabilities'), capabilities: nodeCapabilitiesSchema }),
  z.object({ t: z.literal('lease.renew'), id: z.int(), turns: z.array(z.object(key)) }),
  z.object({ t: z.literal('turn.accepted'), ...key }),
  z.object({ t: z.literal('turn.refused'), ...key, code: z.string().max(64), message: z.string().max(2000) }),
  z.object({ t: z.literal('turn.events'), ...key, events: z.array(turnEventSchema).min(1).max(MAX_EVENTS_PER_MESSAGE) }),
  z.object({ t: z.literal('turn.outcome'), ...key, result: attemptResultSchema }),
  z.object({
    t: z.literal('turn.lost'),
    ...key,
    reason: z.enum(['shim_died', 'lease_lost']),
    detail: z.string().max(2000),
    tree: attemptResultSchema.shape.tree,
  }),
  z.object({ t: z.literal('error'), code: z.string().max(64), message: z.string().max(2000) }),
]);
export type NodeMessage = z.infer<typeof nodeMessageSchema>;
export const NODE_MESSAGE_TYPES = [
  'hello',
  'health',
  'capabilities',
  'lease.renew',
  'turn.accepted',
  'turn.refused',
  'turn.events',
  'turn.outcome',
  'turn.lost',
  'error',
] as const;

/** Addresses of server and database that a node is told. */
export const MAX_OWN_ADDRESSES = 256;

/** Backends that a node is told of. */
export const MAX_NODE_BACKENDS = 64;

/** What a node has to know of a backend; the rest of its manifest is the server's. */
export const nodeBackendSchema = z.object({
  name: z.string().max(64),
  image: imageReferenceSchema.nullable().describe("Null runs in the node's default image, or with the tools of its host."),
  drivers: z.array(driverSchema).max(8).describe('Drivers it can run under.'),
  variables: z.array(z.string().max(128)).max(64).describe('Variables that may enter a guest although they look like secrets.'),
});
export type NodeBackend = z.infer<typeof nodeBackendSchema>;

/** Server -> node agent. */
export const serverMessageSchema = z.discriminatedUnion('t', [
  z.object({ t: z.literal('challenge'), generation: z.int(), minGeneration: z.int(), nonce: z.string().max(100) }),
  z.object({
    t: z.literal('welcome'),
    generation: z.int(),
    epoch: epochSchema,
    leaseTtlMs: z.int().min(1),
    leaseRenewEveryMs: z.int().min(1),
    keep: z
      .array(z.object({ ...key, acked: countSchema, logOffset: countSchema }))
      .describe('Turns of the hello that are still wanted, with what the server holds of them.'),
    drop: z.array(z.object(key)).describe('Turns of the hello that are fenced off: kill, collect nothing, remove.'),
    imagesToken: z
      .string()
      .max(200)
      .optional()
      .describe('Bearer for fetching images from this server while this link is up; absent where it offers none.'),
    backends: z
      .array(nodeBackendSchema)
      .max(MAX_NODE_BACKENDS)
      .optional()
      .describe('All that this server knows. Absent: the server is one that knows the builtin ones alone.'),
  }),
  z.object({ t: z.literal('refused'), code: z.string(), message: z.string() }),
  z.object({
    t: z.literal('turn.start'),
    spec: turnSpecSchema,
    token: z.string().describe('Bearer for the data calls of this attempt.'),
    inputs: z.array(inputBlobSchema),
    ownAddresses: z
      .array(z.string().max(64))
      .max(MAX_OWN_ADDRESSES)
      .optional()
      .describe('Addresses of server and database, which no guest may reach. Absent: the server is one that does not say.'),
  }),
  z.object({ t: z.literal('turn.cancel'), ...key, reason: z.enum(['cancelled', 'superseded', 'draining']) }),
  z.object({
    t: z.literal('lease.ack'),
    id: z.int(),
    renewed: z.array(z.object(key)),
    lost: z.array(z.object(key)),
    egress: z
      .array(z.object({ ...key, egress: turnEgressSchema }))
      .max(1)
      .optional()
      .describe('A turn whose egress has changed, in a message of its own that acknowledges nothing (id 0).'),
  }),
  z.object({ t: z.literal('events.ack'), ...key, seq: countSchema }),
  z.object({ t: z.literal('outcome.ack'), ...key }),
  z.object({ t: z.literal('error'), code: z.string(), message: z.string() }),
]);
export type ServerMessage = z.infer<typeof serverMessageSchema>;
export const SERVER_MESSAGE_TYPES = [
  'challenge',
  'welcome',
  'refused',
  'turn.start',
  'turn.cancel',
  'lease.ack',
  'events.ack',
  'outcome.ack',
  'error',
] as const;

/** Names of one answer to a node that asks for images. */
export const MAX_OFFERED_IMAGES = 1_000;

/** What a server offers its nodes: names of its image store with the ids of the artifacts behind them. */
export const offeredImagesSchema = z.object({
  images: z.array(z.object({ name: imageNameSchema, id: imageIdSchema })).max(MAX_OFFERED_IMAGES),
});
export type OfferedImages = z.infer<typeof offeredImagesSchema>;

/** The bytes a node signs to prove that it holds its key. */
export function nodeHelloText(nonce: string, nodeId: string, bootId: string): string {
  return `firecrew-node-hello\n${nonce}\n${nodeId}\n${bootId}`;
}

/** Data paths of the node link, relative to the server's URL. */
export const nodeDataPaths = {
  link: '/v1/node/link',
  blob: (turnId: string, attempt: number, digest: string) => `/v1/node/turns/${turnId}/${attempt}/blobs/${digest}`,
  log: (turnId: string, attempt: number, offset: number) => `/v1/node/turns/${turnId}/${attempt}/log?offset=${offset}`,
  join: '/v1/node/join',
  images: '/v1/node/images',
  imageManifest: (digest: string) => `/v1/node/images/${digest}`,
  imageFile: (digest: string, fileDigest: string) => `/v1/node/images/${digest}/files/${fileDigest}`,
} as const;
