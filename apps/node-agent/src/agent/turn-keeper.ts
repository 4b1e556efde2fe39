import { createHash } from 'node:crypto';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { CodedError, codeOf, isAlive, messageOf, signalProcess } from '@firecrew/base';
import {
  type AttemptResult,
  type CapturedTree,
  MAX_EVENTS_PER_MESSAGE,
  type NodeMessage,
  type ShimIdentity,
  type TurnEgress,
  type TurnEvent,
  type TurnSpec,
  turnEventSchema,
} from '@firecrew/protocol';
import { removeGuestFolder } from '@firecrew/vmm';
import type { Logger } from 'pino';
import type { Handles } from '../broker/broker-desk.ts';
import { TurnHandle } from '../broker/turn-handle.ts';
import { TailFile } from '../turn-folder/tail-file.ts';
import { readOutcome, readShimIdentity, type TurnPaths } from '../turn-folder/turn-folder.ts';
import { FolderWatch } from '../turn-folder/watch-folder.ts';
import { askShim } from './control-client.ts';
import type { DataClient } from './data-client.ts';
import { endLeftovers } from './end-leftovers.ts';

/** Longest pause between two looks at a turn folder; what changes in it wakes its keeper at once. */
const LOOK_EVERY_MS = 250;
/** Changes within this time are reported together. */
const GATHER_MS = 4;
/** Pause after a report that failed. */
const RETRY_MS = 1_000;
/** Bytes of log in one call, and of the event file in one read. */
const LOG_PIECE_BYTES = 256 * 1024;
const EVENTS_PIECE_BYTES = 1024 * 1024;
/** Time an order to start may take until the shim has said who it is. */
const SHIM_START_TIMEOUT_MS = 30_000;
/** Time between two sendings of what was not acknowledged. */
const RESEND_AFTER_MS = 5_000;
/** Time beyond the turn's own limit after which its shim is killed. */
export const DEADLINE_GRACE_MS = 120_000;

/** What a keeper needs of its node agent. */
export interface KeeperHost {
  send(message: NodeMessage): boolean;
  /** The handles of model routes. */
  readonly handles: Handles;
  /** Boot time in `ms`. */
  clock(): number;
  /** Called when the server has everything and the folder is gone. */
  onDone(keeper: TurnKeeper): void;
  readonly log: Logger;
}

/** One attempt on this node, from its folder's point of view: reports what its shim writes, renews its lease, and ends it when it must. */
export class TurnKeeper {
  readonly spec: TurnSpec;
  readonly paths: TurnPaths;
  readonly #data: DataClient;
  readonly #host: KeeperHost;
  readonly #startedAtMs: number;
  /** When the renewal that the lease counts from was sent, boot time in `ms`. */
  #renewedAtMs: number;
  #identity: ShimIdentity | undefined;
  #acked = 0;
  #sentSeq = 0;
  #sentAtMs = 0;
  readonly #events: TailFile;
  readonly #log: TailFile;
  #eventsOffset = 0;
  #pending: TurnEvent[] = [];
  #logOffset = 0;
  #end: { kind: 'outcome'; result: AttemptResult } | { kind: 'lost'; reason: 'shim_died' | 'lease_lost'; detail: string } | undefined;
  #lastTree: CapturedTree | null = null;
  #uploaded = new Set<string>();
  #endSentAtMs: number | undefined;
  #ending: 'lease_lost' | 'superseded' | undefined;
  /** What the turn may reach, as long as its shim has not said that it follows it. */
  #egress: TurnEgress | undefined;
  #stopped = false;
  /** Its guest is isolated from its shim, which may so hold a handle. */
  #isIsolated = false;
  readonly #handle: TurnHandle;
  #loop: Promise<void> | undefined;

  constructor(spec: TurnSpec, paths: TurnPaths, data: DataClient, host: KeeperHost, renewedAtMs: number) {
    this.spec = spec;
    this.paths = paths;
    this.#data = data;
    this.#host = host;
    this.#renewedAtMs = renewedAtMs;
    this.#startedAtMs = host.clock();
    this.#handle = new TurnHandle(host.handles, spec.backend);
    this.#events = new TailFile(paths.events);
    this.#log = new TailFile(paths.log);
  }

  get key() {
    return { turnId: this.spec.turnId, attempt: this.spec.attempt, epoch: this.spec.epoch };
  }

  get acked(): number {
    return this.#acked;
  }

  get identity(): ShimIdentity | undefined {
    return this.#identity;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Stops reporting without touching the shim: the next node agent adopts it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  /** What the server holds already, as it said in its welcome. */
  resume(acked: number, logOffset: number): void {
    this.#acked = acked;
    this.#logOffset = logOffset;
    this.#sentSeq = acked;
    this.#pending = this.#pending.filter((event) => event.seq > acked);
    this.#endSentAtMs = undefined;
  }

  onEventsAck(seq: number): void {
    this.#acked = Math.max(this.#acked, seq);
    this.#pending = this.#pending.filter((event) => event.seq > this.#acked);
  }

  /** The server has the outcome: the folder may go. */
  async onOutcomeAck(): Promise<void> {
    if (this.#end !== undefined) await this.#remove();
  }

  /** The server misses something that comes before the outcome: all of it is sent again. */
  sendAgain(): void {
    this.#sentSeq = this.#acked;
    this.#endSentAtMs = undefined;
    this.#uploaded.clear();
  }

  /** Whether the shim answers now; only then may its lease be renewed. */
  async answers(): Promise<boolean> {
    if (this.#end !== undefined) return false;
    try {
      await askShim(this.paths.control, { t: 'status' });
      return true;
    } catch {
      return false;
    }
  }

  /** Passes a renewal on to the shim, counted from when it was sent to the server. */
  async renewed(sentAtMs: number): Promise<void> {
    this.#renewedAtMs = Math.max(this.#renewedAtMs, sentAtMs);
    this.#handle.renew(this.#leaseEndMs);
    await askShim(this.paths.control, { t: 'renew', sentAtUptimeMs: sentAtMs }).catch(() => undefined);
  }

  /** What the turn may reach from now on; its shim is told until it has answered. */
  takeEgress(egress: TurnEgress): void {
    this.#egress = egress;
    void this.#passEgress();
  }

  /** Asks the shim to end; what its VM holds is collected and reported. */
  async cancel(): Promise<void> {
    // First of all, so that it holds also where the shim does not listen.
    this.#handle.revoke();
    if (this.#end !== undefined) return;
    await askShim(this.paths.control, { t: 'cancel', reason: 'cancelled' }).catch((error: unknown) => {
      this.#host.log.warn({ ...this.key, detail: messageOf(error) }, 'the shim could not be asked to cancel');
    });
  }

  /** The attempt is fenced off: nothing of it may act or be reported any more. */
  async supersede(): Promise<void> {
    this.#ending = 'superseded';
    this.#handle.revoke();
    await this.#kill();
    await this.#remove();
  }

  async #run(): Promise<void> {
    const watch = new FolderWatch(this.paths.root);
    try {
      while (!this.#stopped) {
        const failed = await this.#tryLook();
        await (failed ? setTimeout(RETRY_MS) : watch.next(LOOK_EVERY_MS));
        await setTimeout(GATHER_MS);
      }
    } finally {
      watch.close();
      this.#events.close();
      this.#log.close();
    }
  }

  /** One look at the folder; true when something could not be reported and must be tried again. */
  async #tryLook(): Promise<boolean> {
    try {
      await this.#look();
      return false;
    } catch (error) {
      if (codeOf(error) === 'upload_refused')
        this.#host.log.warn({ ...this.key, detail: messageOf(error) }, 'the server does not want this attempt any more');
      else this.#host.log.debug({ ...this.key, err: error }, 'reporting failed and is repeated');
      return true;
    }
  }

  async #look(): Promise<void> {
    this.#identity ??= await readShimIdentity(this.paths);
    this.#readEvents();
    await this.#guard();
    await this.#passEgress();
    await this.#giveHandle();
    await this.#sendEvents();
    await this.#sendLog();
    await this.#sendEnd();
  }

  /** Sees the end of the shim, and brings it about where the lease or the deadline demands it and the shim does not do so itself. */
  async #guard(): Promise<void> {
    if (this.#end !== undefined || this.#ending === 'superseded') return;
    const now = this.#host.clock();
    const overLease = now - this.#renewedAtMs > this.spec.lease.selfStopAtMs + this.#patience();
    const overDeadline = now - this.#startedAtMs > this.spec.limits.turnTimeoutMs + DEADLINE_GRACE_MS;
    if (overLease || overDeadline) {
      this.#host.log.warn({ ...this.key, overLease, overDeadline }, 'the shim did not end its attempt in time and is killed');
      this.#ending = 'lease_lost';
      await this.#kill();
    }
    if (this.#identity === undefined) {
      if (now - this.#startedAtMs > SHIM_START_TIMEOUT_MS) await this.#settle();
      return;
    }
    if (!isAlive(this.#identity)) await this.#settle();
  }

  /** Gives the shim the handle of its model route; over its socket, since it may lie on no disk. */
  async #giveHandle(): Promise<void> {
    if (!this.#isIsolated || this.#end !== undefined) return;
    await this.#handle.give(this.#leaseEndMs, (modelHandle) => askShim(this.paths.control, { t: 'status', modelHandle }));
  }

  /** When the shim may act no more, boot time in `ms`. */
  get #leaseEndMs(): number {
    return this.#renewedAtMs + this.spec.lease.selfStopAtMs;
  }

  /** A twentieth of the term: the shim stops itself first, and this is for the one that cannot. */
  #patience(): number {
    return Math.max(500, Math.floor(this.spec.lease.ttlMs / 20));
  }

  /** The shim is gone: its outcome, or the fact that there is none. Nothing of it is left running. */
  async #settle(): Promise<void> {
    this.#handle.revoke();
    const left = await endLeftovers(this.spec, this.paths.root);
    if (left.length > 0) this.#host.log.error({ ...this.key, left }, 'something of an ended attempt could not be ended');
    this.#readEvents();
    const result = await readOutcome(this.paths);
    if (result !== undefined) this.#end = { kind: 'outcome', result };
    else {
      const reason = this.#ending === 'lease_lost' ? 'lease_lost' : 'shim_died';
      const detail =
        reason === 'lease_lost' ? 'the shim did not answer; it and its sandbox were killed' : 'the shim ended without an outcome';
      this.#end = { kind: 'lost', reason, detail };
    }
  }

  async #passEgress(): Promise<void> {
    const egress = this.#egress;
    // Before it has said who it is, a shim answers nobody; the next look finds it.
    if (egress === undefined || this.#end !== undefined || this.#identity === undefined) return;
    const reply = await askShim(this.paths.control, { t: 'renew', sentAtUptimeMs: this.#renewedAtMs, egress }).catch(() => undefined);
    if (reply === undefined) return;
    if (reply.egressRevision !== egress.revision)
      this.#host.log.warn(
        { ...this.key, revision: egress.revision },
        'the shim does not follow the changed egress policy; the one before stays',
      );
    if (this.#egress === egress) this.#egress = undefined;
  }

  async #kill(): Promise<void> {
    if (this.#identity !== undefined) signalProcess(this.#identity, 'SIGKILL');
    await endLeftovers(this.spec, this.paths.root);
  }

  /** Reads whole lines that are new. A line that is not complete yet stays for the next look. */
  #readEvents(): void {
    const bytes = this.#events.read(this.#eventsOffset, EVENTS_PIECE_BYTES);
    const end = bytes.lastIndexOf(0x0a);
    if (end < 0) return;
    this.#eventsOffset += end + 1;
    for (const line of bytes.toString('utf8', 0, end).split('\n')) {
      const event = turnEventSchema.parse(JSON.parse(line));
      if (event.body.kind === 'attempt.started') this.#isIsolated = event.body.isolation !== 'none';
      if (event.body.kind === 'attempt.ended') this.#handle.revoke();
      if (event.body.kind === 'collected' || event.body.kind === 'checkpoint') this.#lastTree = event.body.tree;
      if (event.seq > this.#acked) this.#pending.push(event);
    }
  }

  async #sendEvents(): Promise<void> {
    const now = this.#host.clock();
    if (this.#sentSeq > this.#acked && now - this.#sentAtMs > RESEND_AFTER_MS) this.#sentSeq = this.#acked;
    const next = this.#pending.filter((event) => event.seq > this.#sentSeq).slice(0, MAX_EVENTS_PER_MESSAGE);
    const last = next.at(-1);
    if (last === undefined) return;
    // A checkpoint is worth something only once its tree is at the server.
    for (const event of next) if (event.body.kind === 'checkpoint') await this.#upload(event.body.tree);
    if (!this.#host.send({ t: 'turn.events', ...this.key, events: next })) return;
    this.#sentSeq = last.seq;
    this.#sentAtMs = now;
  }

  async #sendLog(): Promise<void> {
    for (;;) {
      const bytes = this.#log.read(this.#logOffset, LOG_PIECE_BYTES);
      if (bytes.length === 0) return;
      const length = await this.#data.appendLog(this.#logOffset, bytes);
      if (length === undefined) return;
      this.#logOffset = length;
      if (bytes.length < LOG_PIECE_BYTES) return;
    }
  }

  /** The outcome goes last: after every event, every log byte and the tree. */
  async #sendEnd(): Promise<void> {
    const end = this.#end;
    if (end === undefined || this.#pending.length > 0) return;
    const now = this.#host.clock();
    if (this.#endSentAtMs !== undefined && now - this.#endSentAtMs < RESEND_AFTER_MS) return;
    const tree = end.kind === 'outcome' ? end.result.tree : this.#lastTree;
    const sent = tree !== null && (await this.#tryUpload(tree)) ? tree : null;
    const message: NodeMessage =
      end.kind === 'outcome'
        ? { t: 'turn.outcome', ...this.key, result: end.result }
        : { t: 'turn.lost', ...this.key, reason: end.reason, detail: end.detail, tree: sent };
    if (this.#host.send(message)) this.#endSentAtMs = now;
  }

  async #tryUpload(tree: CapturedTree): Promise<boolean> {
    try {
      await this.#upload(tree);
      return true;
    } catch (error) {
      if (codeOf(error) === 'upload_refused' || codeOf(error) === 'ENOENT') return false;
      throw error;
    }
  }

  async #upload(tree: CapturedTree): Promise<void> {
    if (this.#uploaded.has(tree.blobDigest)) return;
    const file = await findStaged(this.paths.staged, tree);
    if (file === undefined) throw new CodedError('upload_refused', `the staged tree ${tree.blobDigest} is gone`, { id: this.spec.turnId });
    await this.#data.upload(tree.blobDigest, file);
    this.#uploaded.add(tree.blobDigest);
  }

  async #remove(): Promise<void> {
    this.#stopped = true;
    if (!(await removeGuestFolder(this.paths.root)))
      this.#host.log.error({ ...this.key, folder: this.paths.root }, 'the folder of an ended attempt could not be removed');
    this.#host.onDone(this);
  }
}

/** The staged file of a tree, by its size and digest's owner: the names in `staged/` are the shim's. */
async function findStaged(folder: string, tree: CapturedTree): Promise<string | undefined> {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    if ((await stat(file)).size !== tree.bytes) continue;
    const hash = createHash('sha256');
    const handle = await open(file);
    for await (const part of handle.createReadStream()) hash.update(part as Buffer);
    if (hash.digest('hex') === tree.blobDigest) return file;
  }
  return undefined;
}
