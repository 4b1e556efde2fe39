import { tables } from '@firecrew/store';
import { eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { lastStoredTree } from './last-stored-tree.ts';

/**
 * Ends attempts whose lease nobody renewed. Every open lease gets a full term from when this server first saw its present
 * renewal count, on the server's own monotonic clock; so a server that starts late, or was frozen, expires nothing at once.
 */
export class LeaseWatch {
  readonly #context: ServerContext;
  readonly #seen = new Map<string, { renewals: number; atMs: number }>();

  constructor(context: ServerContext) {
    this.#context = context;
  }

  /** One look at all open attempts. */
  async sweep(): Promise<void> {
    const { db, clock, config, epoch } = this.#context;
    const rows = await db
      .select({
        turnId: tables.attempts.turnId,
        attempt: tables.attempts.attempt,
        epoch: tables.attempts.epoch,
        renewals: tables.attempts.leaseSeq,
        missionId: tables.turns.missionId,
        nodeId: tables.attempts.nodeId,
      })
      .from(tables.attempts)
      .innerJoin(tables.turns, eq(tables.turns.id, tables.attempts.turnId))
      .where(sql`${tables.attempts.state} <> 'ended'`);
    const now = clock();
    const present = new Set<string>();
    for (const row of rows) {
      const key = `${row.turnId}.${row.attempt}`;
      present.add(key);
      const seen = this.#seen.get(key);
      if (seen === undefined || seen.renewals !== row.renewals) this.#seen.set(key, { renewals: row.renewals, atMs: now });
      else if (now - seen.atMs > config.lease.ttlMs && row.epoch === epoch) await this.#expire(row);
    }
    for (const key of this.#seen.keys()) if (!present.has(key)) this.#seen.delete(key);
  }

  async #expire(row: { turnId: string; attempt: number; epoch: number; missionId: string; nodeId: string }): Promise<void> {
    const { store, nodes, log, config } = this.#context;
    log.warn({ mission: row.missionId, turn: row.turnId, attempt: row.attempt, node: row.nodeId }, 'lease expired');
    nodes.get(row.nodeId)?.send({ t: 'turn.cancel', turnId: row.turnId, attempt: row.attempt, epoch: row.epoch, reason: 'superseded' });
    await store.apply(row.missionId, {
      type: 'attempt_ended',
      turnId: row.turnId,
      attempt: row.attempt,
      epoch: row.epoch,
      outcome: { kind: 'lost', reason: 'node_lost' },
      detail: `no renewal of the lease for ${Math.round(config.lease.ttlMs / 1000)} s`,
      tree: await lastStoredTree(this.#context, row.missionId, row),
      verified: false,
    });
  }
}
