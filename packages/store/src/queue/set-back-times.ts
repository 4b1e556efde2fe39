import type { Db } from 'pg-boss';

/** How far ahead of the database's clock a time of the queue may lie, in seconds: what was written by a transaction that is younger. */
const AHEAD_S = 5;

/**
 * Sets times of the queue that lie in the future back to now: they were written before the clock of the database was set back. The library
 * compares them with that clock alone, and would neither look for dead workers nor give their wake-ups up until the clock is there again. A
 * worker that lives says so within its heartbeat.
 */
export async function setBackTimes(db: Db, schema: string, queue: string): Promise<void> {
  const now = `${schema}.job_now()`;
  const ahead = `${now} + interval '${AHEAD_S} seconds'`;
  await db.executeSql(
    `update ${schema}.queue set monitor_claim_on = least(monitor_claim_on, ${now}), monitor_on = least(monitor_on, ${now}),
       maintain_on = least(maintain_on, ${now})
     where name = $1 and greatest(monitor_claim_on, monitor_on, maintain_on) > ${ahead}`,
    [queue],
  );
  await db.executeSql(
    `update ${schema}.job set started_on = least(started_on, ${now}), heartbeat_on = least(heartbeat_on, ${now})
     where name = $1 and state = 'active' and greatest(started_on, heartbeat_on) > ${ahead}`,
    [queue],
  );
}
