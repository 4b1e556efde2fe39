import { nodeBackendOf } from '@firecrew/backend';
import type { AttemptResult, NodeMessage } from '@firecrew/protocol';
import { type AttemptKey, tables } from '@firecrew/store';
import { and, eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { driveMission } from '../driver/drive-mission.ts';
import { workspaceIdOf } from '../driver/mission-facts.ts';
import { recordAttemptEnd } from '../driver/record-attempt-end.ts';
import { tellNode } from '../policy/tell-nodes.ts';
import { hasRoomMore, slotOf, withoutSlot } from './live-vms.ts';
import type { ConnectedNode } from './node-registry.ts';
import { rememberIdle } from './remember-idle.ts';

type Hello = Extract<NodeMessage, { t: 'hello' }>;

/** Answers a hello: which of the node's turns are still wanted and how far the server has them, and which are fenced off. */
export async function welcomeNode(context: ServerContext, node: ConnectedNode, hello: Hello, imagesToken: string): Promise<void> {
  const keep: { turnId: string; attempt: number; epoch: number; acked: number; logOffset: number }[] = [];
  const drop: AttemptKey[] = [];
  for (const turn of hello.turns) {
    const key = { turnId: turn.turnId, attempt: turn.attempt, epoch: turn.epoch };
    const row = await openAttempt(context, node, key);
    if (row === undefined) drop.push(key);
    else {
      keep.push({ ...key, acked: row.lastSeq, logOffset: row.logBytes });
      node.told.add(`${key.turnId}.${key.attempt}`);
    }
  }
  const { ttlMs, renewEveryMs } = context.config.lease;
  node.send({
    t: 'welcome',
    generation: hello.generation,
    epoch: context.epoch,
    leaseTtlMs: ttlMs,
    leaseRenewEveryMs: renewEveryMs,
    keep,
    drop,
    ...(context.config.images === null ? {} : { imagesToken }),
    backends: context.policy.backends.map(nodeBackendOf),
  });
  // Whatever was changed while the link was down holds for its turns, too.
  await tellNode(context, node);
  await driveMissionsOf(context, node);
}

/** Carries out one message of a node that has said hello. */
export async function handleNodeMessage(context: ServerContext, node: ConnectedNode, message: NodeMessage): Promise<void> {
  switch (message.t) {
    case 'hello':
      node.send({ t: 'error', code: 'hello_repeated', message: 'this link has had its hello' });
      return;
    case 'health':
      return await onHealth(context, node, message);
    case 'capabilities':
      node.capabilities = message.capabilities;
      await context.db.update(tables.nodes).set({ capabilities: message.capabilities }).where(eq(tables.nodes.id, node.id));
      return await wakeWaiting(context);
    case 'lease.renew':
      return await onRenew(context, node, message);
    case 'turn.accepted':
      return await onAccepted(context, node, message);
    case 'turn.refused':
      return await onRefused(context, node, message);
    case 'turn.events':
      return await onEvents(context, node, message);
    case 'turn.outcome':
      return await onOutcome(context, node, message, message.result);
    case 'turn.lost':
      return await onLost(context, node, message);
    case 'error':
      context.log.warn({ node: node.id, code: message.code, detail: message.message }, 'node reports an error');
      return;
  }
}

async function onHealth(
  context: ServerContext,
  node: ConnectedNode,
  { health, vms: said }: Extract<NodeMessage, { t: 'health' }>,
): Promise<void> {
  const vms = said ?? null;
  const givesRoom = node.healthAtMs === null || hasRoomMore(node.vms, vms);
  node.health = health;
  node.vms = vms;
  node.healthAtMs = context.clock();
  await context.db
    .update(tables.nodes)
    .set({ health, healthSeq: sql`${tables.nodes.healthSeq} + 1` })
    .where(eq(tables.nodes.id, node.id));
  await rememberIdle(context, node);
  if (givesRoom) await wakeWaiting(context);
}

async function onRenew(context: ServerContext, node: ConnectedNode, message: Extract<NodeMessage, { t: 'lease.renew' }>): Promise<void> {
  const renewed: AttemptKey[] = [];
  const lost: AttemptKey[] = [];
  for (const key of message.turns) {
    const rows = await context.db
      .update(tables.attempts)
      .set({ leaseSeq: sql`${tables.attempts.leaseSeq} + 1` })
      .where(and(openOn(node, key), eq(tables.attempts.epoch, context.epoch), notOfRevokedSeat()))
      .returning({ turnId: tables.attempts.turnId });
    if (rows.length === 1) renewed.push(key);
    // One of a revoked seat is neither: lost would throw away what its cancellation collects, and its lease runs out as it is.
    else if (key.epoch !== context.epoch || (await openAttempt(context, node, key)) === undefined) lost.push(key);
  }
  node.send({ t: 'lease.ack', id: message.id, renewed, lost });
}

async function onAccepted(context: ServerContext, node: ConnectedNode, key: AttemptKey): Promise<void> {
  const mission = await missionOf(context, node, key);
  if (mission === undefined) return node.send({ t: 'turn.cancel', ...plain(key), reason: 'superseded' });
  await context.store.apply(mission, { type: 'attempt_accepted', ...plain(key) });
}

async function onRefused(context: ServerContext, node: ConnectedNode, message: Extract<NodeMessage, { t: 'turn.refused' }>): Promise<void> {
  const mission = await missionOf(context, node, message);
  if (mission === undefined) return;
  const reason =
    message.code === 'unisolated_not_allowed'
      ? ('unisolated_not_allowed' as const)
      : message.code === 'workspace_unavailable'
        ? ('workspace_unavailable' as const)
        : ('spec_refused' as const);
  if (message.code === 'cancelled') {
    await context.store.apply(mission, {
      type: 'attempt_ended',
      ...plain(message),
      outcome: { kind: 'cancelled' },
      detail: 'cancelled before it was started',
      tree: null,
      verified: false,
    });
    return;
  }
  const detail = `node ${node.name} refused the turn: ${message.message} (${message.code})`;
  await context.store.apply(mission, {
    type: 'attempt_ended',
    ...plain(message),
    outcome: { kind: 'failed_to_start', reason },
    detail,
    tree: null,
    verified: false,
  });
}

async function onEvents(context: ServerContext, node: ConnectedNode, message: Extract<NodeMessage, { t: 'turn.events' }>): Promise<void> {
  const key = plain(message);
  const recorded =
    (await missionOf(context, node, key)) === undefined ? undefined : await context.store.recordTurnEvents(key, message.events);
  if (recorded?.ok === true) {
    // Each once, however often it is sent.
    context.egress.count(message.events.filter(({ seq }) => seq > recorded.before && seq <= recorded.acked));
    node.send({ t: 'events.ack', ...key, seq: recorded.acked });
  } else node.send({ t: 'turn.cancel', ...key, reason: 'superseded' });
}

async function onOutcome(context: ServerContext, node: ConnectedNode, message: AttemptKey, result: AttemptResult): Promise<void> {
  const key = plain(message);
  const mission = await missionOf(context, node, key);
  // An outcome of a fenced or ended attempt is answered too: the node may then remove what it holds.
  if (mission !== undefined) {
    const missing = await missingOf(context, node, mission, key, result);
    if (missing !== undefined) return node.send({ t: 'error', ...missing });
    // Before the end is recorded, which places what waits for this slot.
    node.vms = withoutSlot(node.vms, slotOf(key));
    await recordAttemptEnd(context, mission, key, result);
  }
  node.send({ t: 'outcome.ack', ...key });
}

async function onLost(context: ServerContext, node: ConnectedNode, message: Extract<NodeMessage, { t: 'turn.lost' }>): Promise<void> {
  const key = plain(message);
  const mission = await missionOf(context, node, key);
  if (mission !== undefined) {
    const tree = message.tree === null ? null : { snapshotId: message.tree.snapshotId, blobDigest: message.tree.blobDigest };
    await context.store.apply(mission, {
      type: 'attempt_ended',
      ...key,
      outcome: { kind: 'lost', reason: message.reason },
      detail: message.detail,
      tree,
      verified: false,
    });
  }
  node.send({ t: 'outcome.ack', ...key });
}

/** What an outcome says the server has and it has not: the node sends that first, and then the outcome again. */
async function missingOf(
  context: ServerContext,
  node: ConnectedNode,
  mission: string,
  key: AttemptKey,
  result: AttemptResult,
): Promise<{ code: string; message: string } | undefined> {
  const row = await openAttempt(context, node, key);
  if (row !== undefined && row.lastSeq < result.lastSeq)
    return { code: 'events_missing', message: `${key.turnId}.${key.attempt}: ${row.lastSeq} of ${result.lastSeq} events are here` };
  if (result.tree === null) return undefined;
  const [owner] = await context.db
    .select({ workspaceId: tables.missions.workspaceId })
    .from(tables.missions)
    .where(eq(tables.missions.id, mission));
  if (owner !== undefined && (await context.blobs.has(workspaceIdOf(owner.workspaceId), result.tree.blobDigest))) return undefined;
  return { code: 'tree_missing', message: `${key.turnId}.${key.attempt}: the tree ${result.tree.blobDigest} is not here` };
}

function plain(key: AttemptKey): AttemptKey {
  return { turnId: key.turnId, attempt: key.attempt, epoch: key.epoch };
}

function openOn(node: ConnectedNode, key: AttemptKey) {
  return and(
    eq(tables.attempts.turnId, key.turnId),
    eq(tables.attempts.attempt, key.attempt),
    eq(tables.attempts.epoch, key.epoch),
    eq(tables.attempts.nodeId, node.id),
    sql`${tables.attempts.state} <> 'ended'`,
  );
}

/** The lease of an attempt is not renewed once the seat or key that its mission works under was revoked. */
function notOfRevokedSeat() {
  const { attempts, missions, turns } = tables;
  return sql`not exists (select 1 from ${turns} join ${missions} on ${missions.id} = ${turns.missionId}
    where ${turns.id} = ${attempts.turnId} and ${missions.seatRevoked})`;
}

async function openAttempt(context: ServerContext, node: ConnectedNode, key: AttemptKey) {
  const [row] = await context.db.select().from(tables.attempts).where(openOn(node, key));
  return row;
}

/** The mission of an attempt that is open on this very node, so that no node can speak for another's turn. */
async function missionOf(context: ServerContext, node: ConnectedNode, key: AttemptKey): Promise<string | undefined> {
  const [row] = await context.db
    .select({ missionId: tables.turns.missionId })
    .from(tables.attempts)
    .innerJoin(tables.turns, eq(tables.turns.id, tables.attempts.turnId))
    .where(openOn(node, key));
  return row?.missionId;
}

/**
 * Does at once what waited for this node, such as a cancellation. Not by a wake-up: one that a killed server was at holds back the
 * others of its mission until it has expired, and another server has no link to this node.
 */
async function driveMissionsOf(context: ServerContext, node: ConnectedNode): Promise<void> {
  const rows = await context.db
    .selectDistinct({ missionId: tables.turns.missionId })
    .from(tables.attempts)
    .innerJoin(tables.turns, eq(tables.turns.id, tables.attempts.turnId))
    .where(and(eq(tables.attempts.nodeId, node.id), sql`${tables.attempts.state} <> 'ended'`));
  for (const { missionId } of rows) {
    await driveMission(context, missionId).catch(async (error: unknown) => {
      context.log.warn({ err: error, mission: missionId, node: node.id }, 'a mission could not be driven and is woken up later');
      await context.wake(missionId);
    });
  }
}

async function wakeWaiting(context: ServerContext): Promise<void> {
  const rows = await context.db
    .selectDistinct({ missionId: tables.turns.missionId })
    .from(tables.turns)
    .where(eq(tables.turns.state, 'waiting'));
  for (const row of rows) await context.wake(row.missionId);
}
