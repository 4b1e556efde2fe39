// size: the API of a server is one class, with a few lines for each call
import { createReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import {
  type ArtifactView,
  type AskPolicyInput,
  apiPaths,
  artifactViewSchema,
  type BackendView,
  backendListSchema,
  type CreateMissionInput,
  type FleetView,
  fleetViewSchema,
  gitShaSchema,
  healthzSchema,
  joinReplySchema,
  joinTokenReplySchema,
  type LogChunk,
  logChunkSchema,
  type MintedSeatKey,
  type MissionEvent,
  type MissionSummary,
  type MissionView,
  mintedSeatKeySchema,
  missionEventSchema,
  missionSummarySchema,
  missionViewSchema,
  type PolicyExplanation,
  type PolicyVerdict,
  type PolicyWarning,
  policyAskedSchema,
  policyExplanationSchema,
  policyVerdictSchema,
  retryReplySchema,
  type SeatBudgetChange,
  type SeatDetail,
  type SeatRevoked,
  type SeatView,
  type ServerInfo,
  seatDetailSchema,
  seatListSchema,
  seatPaths,
  seatRevokedSchema,
  seatViewSchema,
  serverInfoSchema,
  uploadReplySchema,
  type Whoami,
  whoamiSchema,
} from '@firecrew/protocol';
import type { Dispatcher } from 'undici';
import * as z from 'zod';
import { FirecrewApiError } from './api-error.ts';
import { type FollowOptions, followStream } from './follow-stream.ts';
import { type Call, type CallContext, readReply, type ServerAddress, send, sendAny, sendFor } from './http-calls.ts';
import { type ReceivedFile, receiveFile } from './receive-file.ts';

/** How a server is reached. */
export interface ClientOptions {
  /** URL, or a function that gives it: asked before every call, so that a restarted server is found again. */
  readonly url: ServerAddress;
  readonly token: string;
  /** Connections of undici to use in place of the global ones, and for a server of this host of direct ones, which no proxy stands in. */
  readonly dispatcher?: Dispatcher;
}

/** The pack of a delivered branch, and what it says about itself. */
export interface ReceivedPack extends ReceivedFile {
  readonly commit: string;
  readonly branch: string;
  /** Commit the work is based on; null for a mission without a repository. */
  readonly base: string | null;
  /** The base was made of the caller's uncommitted changes. */
  readonly synthetic: boolean;
  /** Protected paths changed: a person approves before it is pushed. */
  readonly awaitingApproval: boolean;
}

const missionListSchema = z.object({ missions: z.array(missionSummarySchema) });
const artifactListSchema = z.object({ artifacts: z.array(artifactViewSchema) });
const eventListSchema = z.object({ events: z.array(missionEventSchema) });
const drainReplySchema = z.object({ id: z.string(), draining: z.boolean() });

/** What a node was set to. */
export interface DrainReply {
  readonly id: string;
  readonly draining: boolean;
}
const logListSchema = z.object({ chunks: z.array(logChunkSchema) });

/** Options of `events`. */
export interface EventOptions extends FollowOptions {
  /** Sequence number after which to begin; default 0, the first event. */
  readonly after?: number;
}

/** Options of `logs`. */
export interface LogOptions extends FollowOptions {
  /** Where an earlier stream was left: `turnId.attempt:offset,...`. */
  readonly after?: string;
}

/** The HTTP API of one server. Every reply is checked; a refusal is a {@link FirecrewApiError}. */
export class FirecrewClient {
  readonly #context: CallContext;

  constructor(options: ClientOptions) {
    this.#context = { address: options.url, token: options.token, dispatcher: options.dispatcher };
  }

  /** Version, generations and identity of the server. */
  async info(): Promise<ServerInfo> {
    return await sendFor(this.#context, get(apiPaths.info), serverInfoSchema);
  }

  /** Whether the server can work now, and what it lacks. Throws only where no answer comes. */
  async ready(): Promise<z.infer<typeof healthzSchema>> {
    const call = get(apiPaths.readyz);
    return await readReply(await sendAny(this.#context, call), call, healthzSchema);
  }

  /** Uploads a file (by path), a stream or bytes. With `digest` (SHA-256, hexadecimal) a damaged transfer is refused. Throws `upload_unreadable`. */
  async upload(source: string | Readable | Uint8Array, digest?: string): Promise<z.infer<typeof uploadReplySchema>> {
    const body = typeof source === 'string' ? await openUpload(source) : source;
    const headers: Record<string, string> = { 'content-type': 'application/octet-stream' };
    if (digest !== undefined) headers['x-firecrew-digest'] = digest;
    return await sendFor(this.#context, { method: 'POST', path: apiPaths.uploads, body, headers }, uploadReplySchema);
  }

  /** What the policy would leave out of what a mission asks for. Nothing is stored; throws what creating it would throw for that. */
  async askPolicy(asked: AskPolicyInput): Promise<PolicyWarning[]> {
    return (await sendFor(this.#context, post(apiPaths.askPolicy, asked), policyAskedSchema)).warnings;
  }

  /** Creates a mission and launches it. */
  async createMission(mission: CreateMissionInput): Promise<MissionView> {
    return await sendFor(this.#context, post(apiPaths.missions, mission), missionViewSchema);
  }

  /** The newest missions first; `limit` 1 to 500. */
  async listMissions(options: { readonly limit?: number } = {}): Promise<MissionSummary[]> {
    const call: Call = { ...get(apiPaths.missions), query: { limit: options.limit ?? 50 } };
    return (await sendFor(this.#context, call, missionListSchema)).missions;
  }

  async mission(id: string): Promise<MissionView> {
    return await sendFor(this.#context, get(apiPaths.mission(id)), missionViewSchema);
  }

  /** Asks a mission to end; what its agents have done is collected first. */
  async cancel(id: string): Promise<MissionView> {
    return await sendFor(this.#context, post(apiPaths.cancel(id), {}), missionViewSchema);
  }

  /** Runs a failed phase again, and reopens what it made unreachable. */
  async retry(id: string, phaseId?: string): Promise<z.infer<typeof retryReplySchema>> {
    return await sendFor(this.#context, post(apiPaths.retry(id), phaseId === undefined ? {} : { phaseId }), retryReplySchema);
  }

  /** Approves a delivery that changes protected paths. */
  async approve(id: string, phaseId?: string): Promise<MissionView> {
    return await sendFor(this.#context, post(apiPaths.approve(id), phaseId === undefined ? {} : { phaseId }), missionViewSchema);
  }

  /** What the server's policy says about one target of a mission, by name and port. Nothing is looked up. */
  async checkPolicy(
    id: string,
    question: { readonly host: string; readonly port: number; readonly part: 'setup' | 'run' },
  ): Promise<PolicyVerdict> {
    return await sendFor(this.#context, { ...get(apiPaths.policyCheck(id)), query: { ...question } }, policyVerdictSchema);
  }

  /** What a mission reached and what it was refused, with what would allow it. */
  async explainPolicy(id: string): Promise<PolicyExplanation> {
    return await sendFor(this.#context, get(apiPaths.policy(id)), policyExplanationSchema);
  }

  /** Events of a mission in order, live, until it has ended. A broken connection is made anew and goes on where it was. */
  events(id: string, options: EventOptions = {}): AsyncGenerator<MissionEvent> {
    const lastEventId = options.after === undefined || options.after === 0 ? undefined : String(options.after);
    return followStream(this.#context, { path: apiPaths.events(id), event: 'mission', schema: missionEventSchema, lastEventId }, options);
  }

  /** Up to 500 events that are there now, after the sequence number `after`. */
  async listEvents(id: string, after = 0): Promise<MissionEvent[]> {
    return (await sendFor(this.#context, { ...get(apiPaths.events(id)), query: { after } }, eventListSchema)).events;
  }

  /** Output of the agents of a mission, live, until it has ended; within one attempt in order. */
  logs(id: string, options: LogOptions = {}): AsyncGenerator<LogChunk> {
    return followStream(
      this.#context,
      { path: apiPaths.logs(id), event: 'log', schema: logChunkSchema, lastEventId: options.after },
      options,
    );
  }

  /** Output of the agents of a mission that is there now. */
  async listLogs(id: string): Promise<LogChunk[]> {
    return (await sendFor(this.#context, get(apiPaths.logs(id)), logListSchema)).chunks;
  }

  async artifacts(id: string): Promise<ArtifactView[]> {
    return (await sendFor(this.#context, get(apiPaths.artifacts(id)), artifactListSchema)).artifacts;
  }

  /** Streams an artifact into the new file `file` and checks its digest. */
  async downloadArtifact(id: string, artifact: Pick<ArtifactView, 'id' | 'digest'>, file: string): Promise<ReceivedFile> {
    const call = get(apiPaths.artifact(id, artifact.id));
    const received = await receiveFile(await send(this.#context, call), call, file);
    if (received.digest === artifact.digest) return received;
    await rm(file, { force: true });
    throw new FirecrewApiError({
      code: 'bad_reply',
      message: `artifact ${artifact.id} arrived as ${received.digest}, not as ${artifact.digest}`,
      action: 'Download it again; if it stays, the blob store of the server is damaged.',
      id: artifact.id,
      status: 200,
    });
  }

  /** Streams a tar of all outputs of a mission into the new file `file`. */
  async downloadArchive(id: string, file: string): Promise<ReceivedFile> {
    const call = get(apiPaths.archive(id));
    return await receiveFile(await send(this.#context, call), call, file);
  }

  /** Streams the pack of a mission's delivered branch into the new file `file`. Throws `nothing_delivered`. */
  async pack(id: string, file: string): Promise<ReceivedPack> {
    const call = get(apiPaths.pack(id));
    const answer = await send(this.#context, call);
    const head = (name: string): string => {
      const value = answer.headers[`x-firecrew-${name}`];
      return typeof value === 'string' ? value : '';
    };
    const commit = gitShaSchema.safeParse(head('commit'));
    if (!commit.success || head('branch') === '') {
      answer.body.destroy();
      throw new FirecrewApiError({ code: 'bad_reply', message: `the pack of ${id} says neither commit nor branch`, id, status: 200 });
    }
    return {
      ...(await receiveFile(answer, call, file)),
      commit: commit.data,
      branch: head('branch'),
      base: head('base') === '' ? null : head('base'),
      synthetic: head('synthetic') === 'true',
      awaitingApproval: head('awaiting-approval') === 'true',
    };
  }

  /** Whom the token of this client stands for. */
  async whoami(): Promise<Whoami> {
    return await sendFor(this.#context, get(seatPaths.whoami), whoamiSchema);
  }

  /** The seats of the workspace, by role. */
  async seats(): Promise<SeatView[]> {
    return (await sendFor(this.#context, get(seatPaths.seats), seatListSchema)).seats;
  }

  /** One seat with what its newest attempts were given and charged with. */
  async seat(seatId: string): Promise<SeatDetail> {
    return await sendFor(this.#context, get(seatPaths.seat(encodeURIComponent(seatId))), seatDetailSchema);
  }

  /** Makes the seat of a role, or links it again. For an operator's token, as are the three below. */
  async linkSeat(
    role: string,
    options: { readonly maxTurns?: number; readonly leaseMs?: number | null; readonly budget?: SeatBudgetChange } = {},
  ): Promise<SeatView> {
    return await sendFor(this.#context, post(seatPaths.seats, { role, ...options }), seatViewSchema);
  }

  /** Unlinks a seat: its keys are revoked, and what runs or waits under it is ended. */
  async unlinkSeat(seatId: string): Promise<SeatRevoked> {
    return await sendFor(this.#context, post(seatPaths.unlink(encodeURIComponent(seatId)), {}), seatRevokedSchema);
  }

  /** Makes a key of a seat. The answer alone holds its secret. */
  async mintSeatKey(seatId: string, name: string): Promise<MintedSeatKey> {
    return await sendFor(this.#context, post(seatPaths.keys(encodeURIComponent(seatId)), { name }), mintedSeatKeySchema);
  }

  /** Revokes a key. What runs or waits under it is ended, or goes on under `successor`, a live key of the same seat. */
  async revokeSeatKey(keyId: string, options: { readonly successor?: string } = {}): Promise<SeatRevoked> {
    return await sendFor(this.#context, post(seatPaths.revoke(encodeURIComponent(keyId)), options), seatRevokedSchema);
  }

  /** Capacity as the placer sees it. */
  async fleet(): Promise<FleetView> {
    return await sendFor(this.#context, get(apiPaths.fleet), fleetViewSchema);
  }

  /** The backends that the server knows, and whether missions of each can run now. */
  async backends(): Promise<BackendView[]> {
    return (await sendFor(this.#context, get(apiPaths.backends), backendListSchema)).backends;
  }

  /** A token with which one more host can join. */
  async createJoinToken(): Promise<z.infer<typeof joinTokenReplySchema>> {
    return await sendFor(this.#context, post(apiPaths.joinTokens, {}), joinTokenReplySchema);
  }

  /** Places nothing more on a node, or places there again; what runs goes on. For an operator's token. */
  async drainNode(id: string, draining: boolean): Promise<DrainReply> {
    return await sendFor(this.#context, post(`/v1/nodes/${encodeURIComponent(id)}/drain`, { draining }), drainReplySchema);
  }

  /** Makes this host a node: `publicKey` is an Ed25519 key, SPKI DER, base64; `token` is a join token. */
  async join(node: {
    readonly token: string;
    readonly name: string;
    readonly publicKey: string;
  }): Promise<z.infer<typeof joinReplySchema>> {
    return await sendFor(this.#context, post('/v1/node/join', node), joinReplySchema);
  }
}

function get(path: string): Call {
  return { method: 'GET', path };
}

function post(path: string, json: unknown): Call {
  return { method: 'POST', path, json };
}

async function openUpload(file: string): Promise<Readable> {
  try {
    if ((await stat(file)).isFile()) return createReadStream(file);
  } catch (cause) {
    throw new FirecrewApiError({ code: 'upload_unreadable', message: `${file} cannot be read`, id: file, status: null, cause });
  }
  throw new FirecrewApiError({ code: 'upload_unreadable', message: `${file} is no file`, id: file, status: null });
}
