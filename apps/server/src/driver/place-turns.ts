import { type Backend, findBackend, whyLacking } from '@firecrew/backend';
import { preferNode } from '@firecrew/mission';
import {
  type BatchPlacement,
  type BatchTurn,
  type BudgetCap,
  type Claim,
  type Commitment,
  DRIVERS,
  type Driver,
  judgeSeat,
  meetsFloor,
  type NodeRecord,
  planBatch,
  type SeatRoom,
  type Survey,
  surveyNodes,
} from '@firecrew/placement';
import type { MissionEventBody, NodeCapabilities } from '@firecrew/protocol';
import { type AttemptDemand, type Database, inTransaction, type Transaction, tables } from '@firecrew/store';
import { and, asc, desc, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { liveVmsOf, slotOf } from '../nodes/live-vms.ts';
import { budgetOf, readSeatNumbers } from '../seat-budgets.ts';
import { demandOf } from './demand-of.ts';

/** Advisory lock of the placer: one plans at a time over all replicas. */
const PLACER_LOCK = 0x4643_0001;
/** Turns planned in one pass. */
export const PLACE_BATCH = 500;

/** Most that is told of why nothing can run a turn. */
const DETAIL_MAX_CHARS = 2_000;

interface WaitingTurn {
  readonly turnId: string;
  readonly missionId: string;
  readonly phaseId: string;
  readonly attempt: number;
  readonly spec: (typeof tables.missions.$inferSelect)['spec'];
  readonly waiting: string | null;
  readonly seatId: string | null;
}

/**
 * Places every waiting turn it can: plans a batch in memory, then reserves each with the placement's claim. All of it is one
 * transaction under the placer's lock, so that two servers never give the same slot away.
 */
export async function placeTurns(context: ServerContext): Promise<void> {
  await inTransaction(context.db, async (tx) => {
    const locked = await tx.execute<{ ok: boolean }>(sql`select pg_try_advisory_xact_lock(${PLACER_LOCK}) as ok`);
    if (locked.rows[0]?.ok !== true) return;
    const seats = await seatRooms(tx);
    const all = await waitingTurns(tx, seats);
    const isKnown = ({ spec }: WaitingTurn) => context.policy.backends.some(({ name }) => name === spec.agent.backend);
    for (const turn of all) if (!isKnown(turn)) await refuseUnknown(context, tx, turn);
    const waiting = all.filter(isKnown);
    if (waiting.length === 0) return;
    const nodes = await nodeRecords(context, tx);
    const preferred = await preferredNodes(tx, waiting);
    const turns = waiting.map((turn) => toNeed(context, turn, nodes, preferred.get(turn.missionId)));
    const plan = planBatch({ turns, nodes: nodes.map((item) => item.record), seats, nowMs: context.clock() });
    for (const [index, turn] of waiting.entries()) {
      const planned = plan[index];
      if (planned !== undefined) await settle(context, tx, turn, planned, nodes);
    }
  });
}

/** All nodes as the placer sees them: what the fleet view shows, never a second computation. */
export async function surveyFleet(context: ServerContext): Promise<{ survey: Survey; nodes: readonly KnownNode[] }> {
  const nodes = await inTransaction(context.db, (tx) => nodeRecords(context, tx));
  const need = { demand: {}, backends: ['command'], driverFloor: context.config.driverFloor } as const;
  return { survey: surveyNodes({ ...need, nodes: nodes.map((item) => item.record), nowMs: context.clock() }), nodes };
}

/** A node's row with the record that placement judges. */
export interface KnownNode {
  readonly row: typeof tables.nodes.$inferSelect;
  readonly record: NodeRecord;
}

/** A turn that may be placed: it waits, in a mission that goes on. */
const MAY_BE_PLACED = sql`${tables.turns.state} = 'waiting' and ${tables.missions.state} = 'running' and not ${tables.missions.cancelRequested} and not ${tables.missions.seatRevoked}`;

/**
 * The turns that wait, oldest first. Those that no lease or no budget of their seat is left for come after all others, so that however many wait for
 * a busy seat, they keep nobody else out of the batch.
 */
async function waitingTurns(tx: Transaction, rooms: readonly SeatRoom[]): Promise<WaitingTurn[]> {
  const barred = rooms.filter((room) => judgeSeat(room.id, room).verdict !== 'free').map((room) => room.id);
  const { turns, missions, seats } = tables;
  const held = heldOfSeats(tx).as('held');
  const place = sql`row_number() over (partition by ${missions.seatId} order by ${missions.createdAt}, ${turns.ordinal})`;
  return await tx
    .select({
      turnId: turns.id,
      missionId: turns.missionId,
      phaseId: turns.phaseId,
      attempt: turns.attempt,
      spec: missions.spec,
      waiting: missions.waiting,
      seatId: missions.seatId,
    })
    .from(turns)
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .leftJoin(seats, eq(seats.id, missions.seatId))
    .leftJoin(held, eq(held.seatId, missions.seatId))
    .where(MAY_BE_PLACED)
    .orderBy(
      ...(barred.length === 0 ? [] : [sql`coalesce(${inArray(missions.seatId, barred)}, false)`]),
      sql`${missions.seatId} is not null and ${place} > ${seats.maxTurns} - coalesce(${held.turns}, 0)`,
      asc(missions.createdAt),
      asc(turns.ordinal),
    )
    .limit(PLACE_BATCH);
}

/** How many attempts under each seat have not ended. */
function heldOfSeats(tx: Transaction) {
  const { attempts, missions, turns } = tables;
  return tx
    .select({ seatId: missions.seatId, turns: sql<number>`count(*)::int`.as('held_turns') })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .where(sql`${missions.seatId} is not null and ${attempts.state} <> 'ended'`)
    .groupBy(missions.seatId);
}

/**
 * The linked seats of waiting turns, with the attempts under each that have not ended and what is left of its budget: under the placer's lock
 * these are its leases.
 */
async function seatRooms(tx: Transaction): Promise<SeatRoom[]> {
  const { missions, seats, turns } = tables;
  const wanted = await tx
    .selectDistinct({ id: missions.seatId })
    .from(turns)
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .where(and(MAY_BE_PLACED, isNotNull(missions.seatId)));
  const ids = wanted.flatMap(({ id }) => id ?? []);
  if (ids.length === 0) return [];
  // Held until the reservations are stored: a seat that is unlinked or narrowed meanwhile waits for them, and sees them.
  const known = await tx
    .select()
    .from(seats)
    .where(and(inArray(seats.id, ids), seats.linked))
    .orderBy(asc(seats.id))
    .for('share');
  const held = await heldOfSeats(tx);
  const numbersOf = await readSeatNumbers(
    tx,
    known.flatMap(({ id, budget }) => (budget === null ? [] : [id])),
  );
  return known.map(({ id, role, maxTurns, budget: row }) => {
    const budget = budgetOf(row, numbersOf(id));
    const turnsHeld = held.find((item) => item.seatId === id)?.turns ?? 0;
    return { id, role, maxTurns, held: turnsHeld, ...(budget === undefined ? {} : { budget }) };
  });
}

/** The node that each mission prefers, by the mission's id. */
async function preferredNodes(tx: Transaction, waiting: readonly WaitingTurn[]): Promise<ReadonlyMap<string, string>> {
  const { attempts, turns } = tables;
  const latest = await tx
    .selectDistinctOn([turns.missionId], { missionId: turns.missionId, nodeId: attempts.nodeId, outcome: attempts.outcome })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .where(inArray(turns.missionId, [...new Set(waiting.map((turn) => turn.missionId))]))
    .orderBy(turns.missionId, desc(turns.ordinal), desc(attempts.attempt));
  return new Map(
    latest.flatMap((attempt) => {
      const nodeId = preferNode(attempt);
      return nodeId === undefined ? [] : [[attempt.missionId, nodeId] as const];
    }),
  );
}

async function nodeRecords(context: ServerContext, tx: Transaction | Database): Promise<KnownNode[]> {
  const rows = await tx.select().from(tables.nodes).where(sql`${tables.nodes.revokedAt} is null`);
  const open = await tx.select().from(tables.attempts).where(sql`${tables.attempts.state} <> 'ended'`);
  return rows.map((row) => {
    const link = context.nodes.get(row.id);
    const capabilities = link?.capabilities ?? null;
    const claims = open
      .filter((item) => item.nodeId === row.id)
      .map((item) => ({
        vmId: slotOf(item),
        ...(item.demand === null ? {} : commitmentOf(item.demand)),
      }));
    const health = link?.health ?? null;
    const record: NodeRecord = {
      id: row.id,
      name: row.name,
      draining: row.draining,
      connected: link !== undefined,
      drivers: capabilities?.drivers.map((item) => item.driver) ?? [],
      images: Object.fromEntries(capabilities?.drivers.map((item) => [item.driver, item.backends]) ?? []),
      comingImages: comingOf(context.policy.backends, capabilities),
      modelRoutes: routesOf(context.policy.backends, capabilities),
      live: liveVmsOf(link?.vms ?? null),
      reserved: claims,
      ...(row.idleBaselineMib === null ? {} : { rememberedBaselineMib: row.idleBaselineMib }),
      ...(health === null || link?.healthAtMs == null
        ? {}
        : {
            health: {
              atMs: link.healthAtMs,
              memoryTotalMib: health.memoryTotalMib,
              memoryUsedMib: health.memoryUsedMib,
              ...(health.diskFreeMib === null ? {} : { diskFreeMib: health.diskFreeMib }),
            },
          }),
    };
    return { row, record };
  });
}

/** Which backends a node is getting the image of, by driver; where it is getting what the driver itself needs, all that can run under that. */
function comingOf(backends: readonly Backend[], capabilities: NodeCapabilities | null): NonNullable<NodeRecord['comingImages']> {
  const ofDrivers = (capabilities?.drivers ?? []).map(
    ({ driver, lacking = [] }) => [driver, lacking.flatMap(({ backend, coming }) => (coming === true ? [backend] : []))] as const,
  );
  const ofUnavailable = (capabilities?.unavailable ?? [])
    .filter(({ coming }) => coming === true)
    .map(({ driver }) => [driver, backends.filter(({ drivers }) => drivers.includes(driver)).map(({ name }) => name)] as const);
  return Object.fromEntries([...ofDrivers, ...ofUnavailable]);
}

/**
 * Which backends have a model route under each driver of a node: guests that nothing isolates are offered none, and a route of another format
 * than the manifest names is none.
 */
function routesOf(backends: readonly Backend[], capabilities: NodeCapabilities | null): NonNullable<NodeRecord['modelRoutes']> {
  const formatOf = (name: string) => backends.find((backend) => backend.name === name)?.modelRoute?.format;
  const routed = (capabilities?.modelRoutes ?? []).filter(({ backend, format }) => (formatOf(backend) ?? format) === format);
  const names = routed.map(({ backend }) => backend);
  return Object.fromEntries(
    capabilities?.drivers.filter(({ isolation }) => isolation !== 'none').map(({ driver }) => [driver, names]) ?? [],
  );
}

/** What a row says of an attempt's claim; a driver that this version does not know is left out, and then it counts as the strictest. */
function commitmentOf({ driver: name, memoryMib, diskMib }: AttemptDemand): Omit<Commitment, 'vmId'> {
  const driver = DRIVERS.find((each) => each === name);
  return { memoryMib, diskMib, ...(driver === undefined ? {} : { driver }) };
}

function toNeed(context: ServerContext, turn: WaitingTurn, nodes: readonly KnownNode[], preferred: string | undefined): BatchTurn {
  const backend = findBackend(turn.spec.agent.backend, context.policy.backends);
  const demand = demandOf(backend);
  const driver: Driver | undefined = turn.spec.driver;
  const fallback = nodes.length === 0 ? undefined : driver;
  return {
    vmId: slotOf({ turnId: turn.turnId, attempt: turn.attempt + 1 }),
    demand,
    backends: [turn.spec.agent.backend],
    driverFloor: floorOf(context.config.driverFloor, backend),
    modelRoute: turn.spec.needsModelRoute === true || backend.modelRoute !== null,
    ...(fallback === undefined ? {} : { driver: fallback }),
    ...(preferred === undefined ? {} : { preferred }),
    ...(turn.seatId === null ? {} : { seatId: turn.seatId }),
  };
}

/** The operator's floor, or what the backend can run under at the weakest where that is above it. */
function floorOf(floor: Driver, { drivers }: Backend): Driver {
  const weakest = DRIVERS.find((driver) => drivers.includes(driver)) ?? floor;
  return meetsFloor(weakest, floor) ? weakest : floor;
}

async function settle(
  context: ServerContext,
  tx: Transaction,
  turn: WaitingTurn,
  { placement, grant }: BatchPlacement,
  nodes: readonly KnownNode[],
): Promise<void> {
  if (placement.verdict === 'chosen') {
    const node = nodes.find((item) => item.record.id === placement.nodeId);
    if (placement.preference.status === 'passed_over') {
      const ids = { mission: turn.missionId, turn: turn.turnId, node: placement.nodeId };
      context.log.info({ ...ids, detail: placement.preference.detail }, 'the node of the last attempt is passed over');
    }
    if (node !== undefined) return await reserve(context, tx, turn, node, placement.driver, placement.claim, grant);
  }
  if (
    placement.verdict === 'never_fits' ||
    (placement.verdict === 'no_capable_node' && nodes.length > 0 && nodes.every((item) => item.record.drivers.length > 0))
  ) {
    const reason = placement.verdict;
    const said = nodes.map(({ row: { name }, record }) => ({ name, capabilities: context.nodes.get(record.id)?.capabilities ?? null }));
    const why = whyLacking({ name: turn.spec.agent.backend }, said);
    const detail =
      placement.verdict === 'never_fits' ? placement.message : [placement.howToFix, ...why].join('; ').slice(0, DETAIL_MAX_CHARS);
    await context.store.applyIn(tx, turn.missionId, {
      type: 'placement_refused',
      turnId: turn.turnId,
      outcome: { kind: 'failed_to_start', reason },
      detail,
    });
    return;
  }
  const detail =
    placement.verdict === 'no_capable_node'
      ? 'no node has reported what it can run yet'
      : placement.verdict === 'chosen'
        ? ''
        : placement.message;
  await tellWaiting(context, tx, turn, placement.verdict, detail);
}

/** The manifest was taken from the server's configuration after the mission was made. */
async function refuseUnknown(context: ServerContext, tx: Transaction, { missionId, turnId, spec }: WaitingTurn): Promise<void> {
  await context.store.applyIn(tx, missionId, {
    type: 'placement_refused',
    turnId,
    outcome: { kind: 'failed_to_start', reason: 'no_capable_node' },
    detail: `the backend ${spec.agent.backend} is no longer among those of this server`,
  });
}

async function reserve(
  context: ServerContext,
  tx: Transaction,
  turn: WaitingTurn,
  node: KnownNode,
  driver: Driver,
  claim: Claim,
  grant: BudgetCap | undefined,
): Promise<void> {
  const input = {
    type: 'attempt_reserved',
    turnId: turn.turnId,
    epoch: context.epoch,
    nodeId: node.record.id,
    node: node.record.name,
  } as const;
  await context.store.applyIn(tx, turn.missionId, input, async (inner, mission) => {
    const attempt = mission.turns.find((item) => item.id === turn.turnId)?.attempt ?? 0;
    await inner
      .update(tables.attempts)
      .set({ demand: { driver, memoryMib: claim.memoryMib, diskMib: claim.diskMib }, seatGrant: grant ?? null })
      .where(sql`${tables.attempts.turnId} = ${turn.turnId} and ${tables.attempts.attempt} = ${attempt}`);
    await inner.update(tables.missions).set({ waiting: null }).where(eq(tables.missions.id, turn.missionId));
  });
}

/** Says what a turn waits for, once for each kind of reason. */
async function tellWaiting(context: ServerContext, tx: Transaction, turn: WaitingTurn, reason: string, detail: string): Promise<void> {
  if (turn.waiting?.startsWith(`${reason}:`) === true) return;
  await tx
    .update(tables.missions)
    .set({ waiting: `${reason}: ${detail}` })
    .where(eq(tables.missions.id, turn.missionId));
  const body: MissionEventBody = {
    kind: 'turn.waiting',
    phaseId: turn.phaseId,
    turnId: turn.turnId,
    attempt: turn.attempt + 1,
    reason,
    detail,
  };
  await context.store.tellIn(tx, turn.missionId, [body]);
}
