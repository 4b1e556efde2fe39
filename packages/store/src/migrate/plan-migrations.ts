/** One migration of the code: `when` is its time of making in ms, which orders them. */
export interface KnownMigration {
  readonly when: number;
  readonly hash: string;
}

/** What is to be done, or why nothing may be done. `when` names the first migration the verdict is about. */
export type MigrationPlan =
  | { readonly verdict: 'apply'; readonly pending: number }
  | { readonly verdict: 'refuse'; readonly reason: MigrationRefusal; readonly when: number };

/** Why a database is refused. */
export type MigrationRefusal =
  /** It has a migration that this version of the code does not know. */
  | 'database_newer'
  /** A migration was changed after it had been applied. */
  | 'migration_changed'
  /** A migration is older than one already applied and would be left out for ever. */
  | 'migration_out_of_order';

/** Compares what the code knows (ascending) with what the database has. */
export function planMigrations(known: readonly KnownMigration[], applied: readonly KnownMigration[]): MigrationPlan {
  const hashes = new Map(known.map(({ when, hash }) => [when, hash]));
  for (const { when, hash } of applied) {
    const expected = hashes.get(when);
    if (expected === undefined) return { verdict: 'refuse', reason: 'database_newer', when };
    if (expected !== hash) return { verdict: 'refuse', reason: 'migration_changed', when };
  }
  const done = new Set(applied.map(({ when }) => when));
  const last = Math.max(-1, ...done);
  const pending = known.filter(({ when }) => !done.has(when));
  const late = pending.find(({ when }) => when < last);
  return late === undefined
    ? { verdict: 'apply', pending: pending.length }
    : { verdict: 'refuse', reason: 'migration_out_of_order', when: late.when };
}
