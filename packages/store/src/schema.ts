import type { AttemptState, MissionState, Outcome, PhaseState, RunState, TreeRef, TurnState } from '@firecrew/mission';
import type {
  AttemptResult,
  CreateMission,
  Delivery,
  MissionEnd,
  MissionEventBody,
  NodeCapabilities,
  NodeHealth,
} from '@firecrew/protocol';
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
const time = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' });
const created = () => time('created_at').notNull().defaultNow();

/** Facts about the installation itself: home id, epoch. */
export const settings = pgTable('settings', { key: text('key').primaryKey(), value: text('value').notNull() });

export const workspaces = pgTable('workspaces', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  createdAt: created(),
});

/** Tokens, and millionths of a unit of money; null bounds nothing. */
export interface SeatCap {
  readonly tokens: number | null;
  readonly micros: number | null;
}

/** Budget of a seat: of one attempt, of all of a day (UTC) and of all. */
export interface SeatBudgetRow {
  readonly turn: SeatCap;
  readonly day: SeatCap;
  readonly total: SeatCap;
}

/** Identities of roles in a workspace. One that is unlinked keeps its row, so that its missions still name it. */
export const seats = pgTable(
  'seats',
  {
    id: text('id').primaryKey(),
    workspaceId: text('workspace_id')
      .notNull()
      .references(() => workspaces.id),
    role: text('role').notNull(),
    linked: boolean('linked').notNull().default(true),
    /** Turns that may run under it at once. */
    maxTurns: integer('max_turns').notNull(),
    /** Longest that one turn may run under it, in ms; null leaves that to the turn. */
    leaseMs: bigint('lease_ms', { mode: 'number' }),
    /** Null bounds nothing. */
    budget: jsonb('budget').$type<SeatBudgetRow>(),
    createdAt: created(),
  },
  (table) => [uniqueIndex('seats_by_role').on(table.workspaceId, table.role), check('seat_turns', sql`${table.maxTurns} >= 1`)],
);

/** What seats were charged with, by the day (UTC) on which the attempts were placed. */
export const seatUse = pgTable(
  'seat_use',
  {
    seatId: text('seat_id')
      .notNull()
      .references(() => seats.id),
    day: date('day', { mode: 'string' }).notNull(),
    attempts: integer('attempts').notNull(),
    tokens: bigint('tokens', { mode: 'number' }).notNull(),
    micros: bigint('micros', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.seatId, table.day] })],
);

/** Bearer tokens of the API, seat keys among them; only the SHA-256 of a token is kept. */
export const apiTokens = pgTable(
  'api_tokens',
  {
    id: text('id').primaryKey(),
    workspaceId: text('workspace_id')
      .notNull()
      .references(() => workspaces.id),
    name: text('name').notNull(),
    hash: text('hash').notNull().unique(),
    role: text('role').$type<'operator' | 'member' | 'seat'>().notNull(),
    seatId: text('seat_id').references(() => seats.id),
    createdAt: created(),
    revokedAt: time('revoked_at'),
  },
  (table) => [check('token_of_seat', sql`(${table.role} = 'seat') = (${table.seatId} is not null)`)],
);

/** Single-use tokens with which a node joins. */
export const joinTokens = pgTable('join_tokens', {
  id: text('id').primaryKey(),
  hash: text('hash').notNull().unique(),
  createdAt: created(),
  expiresAt: time('expires_at').notNull(),
  usedAt: time('used_at'),
  usedBy: text('used_by'),
});

export const nodes = pgTable('nodes', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique(),
  publicKey: text('public_key').notNull(),
  draining: boolean('draining').notNull().default(false),
  capabilities: jsonb('capabilities').$type<NodeCapabilities>(),
  health: jsonb('health').$type<NodeHealth>(),
  /** Counts health reports, so that each replica judges their age by its own clock. */
  healthSeq: bigint('health_seq', { mode: 'number' }).notNull().default(0),
  /** Memory in MiB that the host was seen to use while no attempt was committed to it. */
  idleBaselineMib: integer('idle_baseline_mib'),
  createdAt: created(),
  revokedAt: time('revoked_at'),
});

/** Base of a mission: what the tree was when the mission was made. */
export interface MissionBase {
  readonly commit: string | null;
  readonly synthetic: boolean;
  readonly branch: string | null;
  readonly tree: TreeRef;
  readonly treeBytes: number;
  /** Blob of the pack that the mission's repository can be rebuilt from. */
  readonly pack: string | null;
  readonly shallow: readonly string[];
}

export const missions = pgTable(
  'missions',
  {
    id: text('id').primaryKey(),
    workspaceId: text('workspace_id')
      .notNull()
      .references(() => workspaces.id),
    title: text('title').notNull(),
    state: text('state').$type<MissionState>().notNull(),
    cancelRequested: boolean('cancel_requested').notNull().default(false),
    /** Why it was cancelled, where that was not a caller's wish. */
    cancelDetail: text('cancel_detail'),
    seatId: text('seat_id').references(() => seats.id),
    /** The key that it depends on: the one it was made with, or the one that took over. */
    seatKeyId: text('seat_key_id').references(() => apiTokens.id),
    /** Its seat or key was revoked: nothing of it is placed or renewed any more. */
    seatRevoked: boolean('seat_revoked').notNull().default(false),
    version: integer('version').notNull().default(0),
    nextEventSeq: integer('next_event_seq').notNull().default(1),
    spec: jsonb('spec').$type<CreateMission>().notNull(),
    base: jsonb('base').$type<MissionBase>(),
    waiting: text('waiting'),
    end: jsonb('end_record').$type<MissionEnd>(),
    createdAt: created(),
    endedAt: time('ended_at'),
  },
  (table) => [
    index('missions_by_state').on(table.state),
    index('missions_by_age').on(table.workspaceId, table.createdAt),
    index('missions_by_seat').on(table.seatId),
    check('mission_state', sql`${table.state} in ('draft', 'running', 'completed', 'failed', 'cancelled')`),
  ],
);

export const phases = pgTable(
  'phases',
  {
    id: text('id').primaryKey(),
    missionId: text('mission_id')
      .notNull()
      .references(() => missions.id, { onDelete: 'cascade' }),
    position: integer('position').notNull(),
    kind: text('kind').notNull(),
    state: text('state').$type<PhaseState>().notNull(),
    iteration: integer('iteration').notNull().default(0),
    outcome: jsonb('outcome').$type<Outcome>(),
    detail: text('detail').notNull().default(''),
    deliveryState: text('delivery_state').$type<'none' | 'wanted' | 'done'>().notNull().default('none'),
    deliveryFailed: boolean('delivery_failed').notNull().default(false),
    resultTurn: text('result_turn'),
    resultAttempt: integer('result_attempt'),
    runId: text('run_id'),
    delivery: jsonb('delivery').$type<Delivery>(),
    approvedBy: text('approved_by'),
  },
  (table) => [
    uniqueIndex('phases_in_order').on(table.missionId, table.position),
    check('phase_state', sql`${table.state} in ('pending', 'running', 'completed', 'failed', 'skipped')`),
  ],
);

export const runs = pgTable('runs', {
  id: text('id').primaryKey(),
  missionId: text('mission_id')
    .notNull()
    .references(() => missions.id, { onDelete: 'cascade' }),
  phaseId: text('phase_id').notNull(),
  state: text('state').$type<RunState>().notNull(),
  checkpoint: jsonb('checkpoint').$type<unknown>(),
  createdAt: created(),
});

export const turns = pgTable(
  'turns',
  {
    id: text('id').primaryKey(),
    missionId: text('mission_id')
      .notNull()
      .references(() => missions.id, { onDelete: 'cascade' }),
    phaseId: text('phase_id').notNull(),
    runId: text('run_id').notNull(),
    step: integer('step').notNull(),
    graphNode: text('graph_node').notNull(),
    state: text('state').$type<TurnState>().notNull(),
    attempt: integer('attempt').notNull().default(0),
    tries: integer('tries').notNull().default(0),
    /** Order in which turns of a mission were made. */
    ordinal: integer('ordinal').notNull(),
  },
  (table) => [
    index('turns_waiting').on(table.state),
    index('turns_of_mission').on(table.missionId),
    check('turn_state', sql`${table.state} in ('waiting', 'running', 'ended')`),
  ],
);

/** What an attempt commits its node to. */
export interface AttemptDemand {
  readonly driver: string;
  readonly memoryMib: number;
  readonly diskMib: number;
}

export const attempts = pgTable(
  'attempts',
  {
    turnId: text('turn_id')
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    attempt: integer('attempt').notNull(),
    epoch: integer('epoch').notNull(),
    nodeId: text('node_id')
      .notNull()
      .references(() => nodes.id),
    state: text('state').$type<AttemptState>().notNull(),
    outcome: jsonb('outcome').$type<Outcome>(),
    detail: text('detail').notNull().default(''),
    tree: jsonb('tree').$type<TreeRef>(),
    verified: boolean('verified').notNull().default(false),
    demand: jsonb('demand').$type<AttemptDemand>(),
    result: jsonb('result').$type<AttemptResult>(),
    /** What it was given of the budget of its seat: held until it ends. */
    seatGrant: jsonb('seat_grant').$type<SeatCap>(),
    /** What its seat was charged with when it ended. */
    seatCharge: jsonb('seat_charge').$type<{ readonly tokens: number; readonly micros: number }>(),
    /** Last turn event applied: the next one must be this plus 1. */
    lastSeq: integer('last_seq').notNull().default(0),
    logBytes: bigint('log_bytes', { mode: 'number' }).notNull().default(0),
    /** Counts renewals, so that each replica judges the lease by its own clock. */
    leaseSeq: bigint('lease_seq', { mode: 'number' }).notNull().default(0),
    startedAt: time('started_at').notNull().defaultNow(),
    endedAt: time('ended_at'),
  },
  (table) => [
    primaryKey({ columns: [table.turnId, table.attempt] }),
    index('attempts_open').on(table.nodeId).where(sql`state <> 'ended'`),
    check('attempt_state', sql`${table.state} in ('reserved', 'accepted', 'ended')`),
  ],
);

export const events = pgTable(
  'events',
  {
    missionId: text('mission_id')
      .notNull()
      .references(() => missions.id, { onDelete: 'cascade' }),
    seq: integer('seq').notNull(),
    at: time('at').notNull().defaultNow(),
    body: jsonb('body').$type<MissionEventBody>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.missionId, table.seq] })],
);

/** Log bytes of an attempt, each piece once by its offset. */
export const logChunks = pgTable(
  'log_chunks',
  {
    turnId: text('turn_id')
      .notNull()
      .references(() => turns.id, { onDelete: 'cascade' }),
    attempt: integer('attempt').notNull(),
    at: bigint('at_offset', { mode: 'number' }).notNull(),
    bytes: bytea('bytes').notNull(),
  },
  (table) => [primaryKey({ columns: [table.turnId, table.attempt, table.at] })],
);

export const artifacts = pgTable(
  'artifacts',
  {
    id: text('id').primaryKey(),
    missionId: text('mission_id')
      .notNull()
      .references(() => missions.id, { onDelete: 'cascade' }),
    phaseId: text('phase_id').notNull(),
    turnId: text('turn_id'),
    attempt: integer('attempt'),
    name: text('name').notNull(),
    kind: text('kind').$type<'patch' | 'names' | 'diffstat' | 'document' | 'log' | 'record' | 'tree' | 'egress'>().notNull(),
    mime: text('mime').notNull(),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    digest: text('digest').notNull(),
    truncated: boolean('truncated').notNull().default(false),
    createdAt: created(),
  },
  (table) => [uniqueIndex('artifacts_by_name').on(table.missionId, table.phaseId, table.turnId, table.attempt, table.name)],
);

/** Which blob holds a snapshot. */
export const snapshots = pgTable(
  'snapshots',
  {
    workspaceId: text('workspace_id')
      .notNull()
      .references(() => workspaces.id),
    snapshotId: text('snapshot_id').notNull(),
    blobDigest: text('blob_digest').notNull(),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.workspaceId, table.snapshotId] })],
);
