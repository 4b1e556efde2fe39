import { tables } from '@firecrew/store';
import { eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { lastStoredTree } from './last-stored-tree.ts';
import { LeaseTerms } from './lease-terms.ts';

/** Ends attempts whose lease nobody renewed, by {@link LeaseTerms}. */
export class LeaseWatch {
  readonly #context: ServerContext;
  readonly #terms: LeaseTerms;

  constructor(context: ServerContext) {
    this.#context = context;
    this.#terms = new LeaseTerms(context.config.lease.ttlMs);
  }

  /** One look at all open attempts. */
  async sweep(): Promise<void> {
    const { db, clock, epoch } = this.#context;
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
    const keyOf = (row: { turnId: string; attempt: number }): string => `${row.turnId}.${row.attempt}`;
    const expired = this.#terms.look(
      rows.map((row) => ({ key: keyOf(row), renewals: row.renewals })),
      clock(),
    );
    for (const row of rows) if (expired.has(keyOf(row)) && row.epoch === epoch) await this.#expire(row);
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
