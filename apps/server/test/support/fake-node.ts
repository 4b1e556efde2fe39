import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type AttemptResult, GENERATION, nodeDataPaths, type ServerMessage, type TurnEventBody, type TurnSpec } from '@firecrew/protocol';
import { snapshotDirectory } from '@firecrew/workspace';
import { NodePeer } from './node-peer.ts';
import type { TestServer } from './running-server.ts';

type Start = Extract<ServerMessage, { t: 'turn.start' }>;
const MEMORY_MIB = 8192;

/** A node that speaks the real link and makes up what its attempts come to. */
export class FakeNode extends NodePeer {
  /** Connects, says hello, and reports room for `slots` attempts of the process driver. */
  static async connect(server: TestServer, slots = 4): Promise<FakeNode> {
    const node = new FakeNode(server);
    await node.hello();
    await node.next('welcome');
    // 512 MiB are kept for the host, 256 MiB are what it is believed to use by itself, and each attempt claims 1024 MiB.
    const memoryTotalMib = Math.min(MEMORY_MIB, 512 + 256 + slots * 1024);
    node.send({ t: 'health', health: { memoryTotalMib, memoryUsedMib: 0, diskFreeMib: 1_000_000, cpuPercent: 0, load1: 0 } });
    const drivers = [{ driver: 'process', isolation: 'none', backends: ['command'], detail: 'fake' }];
    node.send({ t: 'capabilities', capabilities: { drivers, kvm: false, cpus: 2, platform: 'fake', agentVersion: '1' } });
    return node;
  }

  /** Accepts the next order to start. */
  async accept(): Promise<Start> {
    const start = await this.next('turn.start');
    this.send({ t: 'turn.accepted', ...keyOf(start.spec) });
    return start;
  }

  report(spec: TurnSpec, seq: number, body: TurnEventBody): void {
    this.send({ t: 'turn.events', ...keyOf(spec), events: [{ seq, at: new Date().toISOString(), body }] });
  }

  /** Hands in `files` as the collected tree of an attempt, uploaded and reported as its outcome. */
  async finish(start: Start, files: Readonly<Record<string, string>>, over: Partial<AttemptResult> = {}): Promise<void> {
    const tree = await this.uploadTree(start, files);
    const now = new Date().toISOString();
    const result: AttemptResult = {
      generation: GENERATION,
      ...keyOf(start.spec),
      outcome: { kind: 'completed' },
      detail: '',
      isolation: 'none',
      rounds: [],
      tree,
      checkpoint: false,
      verification: start.spec.check === null ? 'none' : 'verified',
      checkInputsChanged: [],
      restoredPaths: [],
      egress: { allowed: [], denied: [] },
      logBytes: 0,
      lastSeq: 0,
      startedAt: now,
      endedAt: now,
      ...over,
    };
    this.send({ t: 'turn.outcome', ...keyOf(start.spec), result });
    await this.next('outcome.ack');
  }

  /** Uploads a tree with the attempt's own token. */
  async uploadTree(start: Start, files: Readonly<Record<string, string>>): Promise<NonNullable<AttemptResult['tree']>> {
    const folder = await mkdtemp(join(tmpdir(), 'firecrew-fake-'));
    try {
      await mkdir(join(folder, 'tree'));
      for (const [path, text] of Object.entries(files)) {
        await mkdir(join(folder, 'tree', dirname(path)), { recursive: true });
        await writeFile(join(folder, 'tree', path), text);
      }
      const snapshot = await snapshotDirectory(join(folder, 'tree'), join(folder, 'blob'));
      const bytes = await readFile(join(folder, 'blob'));
      const path = nodeDataPaths.blob(start.spec.turnId, start.spec.attempt, snapshot.blobDigest);
      const reply = await this.server.call('PUT', path, { token: start.token, bytes });
      if (reply.status !== 200) throw new Error(`the upload was answered with ${reply.status}: ${JSON.stringify(reply.body)}`);
      const { snapshotId, blobDigest } = snapshot;
      return { snapshotId, blobDigest, bytes: bytes.length, files: snapshot.entries.length, round: 1, excluded: [], skipped: [] };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

export function keyOf(spec: { readonly turnId: string; readonly attempt: number; readonly epoch: number }) {
  return { turnId: spec.turnId, attempt: spec.attempt, epoch: spec.epoch };
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
