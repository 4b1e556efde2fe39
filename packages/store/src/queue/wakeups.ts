import { CodedError, type MissionId, messageOf, parseId } from '@firecrew/base';
import { sql } from 'drizzle-orm';
import { type Clock, type DrizzleTransactionLike, fromDrizzle, type Job, PgBoss, systemClock } from 'pg-boss';
import { setBackTimes } from './set-back-times.ts';

/** Name of the queue; a job's key is the mission's id. */
export const WAKEUP_QUEUE = 'mission-wakeup';
/** Schema of the queue's tables, apart from ours. */
export const QUEUE_SCHEMA = 'firecrew_queue';
/** A wake-up that runs longer is given up by the queue and repeated. */
export const WAKEUP_EXPIRES_S = 30;
/** A wake-up of a process that died is repeated after about this. */
const HEARTBEAT_S = 10;
/** How often expired wake-ups are looked for. */
const SUPERVISE_S = 5;
/** How often the queue is looked at when no notice comes: retries have none. */
const POLL_S = 2;
/** Longest pause before a failed wake-up is repeated. */
const RETRY_DELAY_MAX_S = 30;
/** A failed wake-up is repeated as good as for ever: giving up is the mission's decision, not the queue's. */
const RETRY_LIMIT = 1_000_000;
/** Connections of the queue beside the one that listens. */
const QUEUE_CONNECTIONS = 4;

/** Time of the queue in this process: its waits would last as much longer as the clock of the machine is set back meanwhile. */
const STEADY_CLOCK: Clock = { ...systemClock, now: () => performance.timeOrigin + performance.now() };

/** How to reach the queue's database: fields of the `pg` driver, or one URL. */
export type WakeupConnection =
  | { readonly connectionString: string }
  | { readonly host: string; readonly port: number; readonly user: string; readonly password: string; readonly database: string };

/** What `startWakeups` needs. */
export interface WakeupOptions {
  readonly connection: WakeupConnection;
  /**
   * Reconciles one mission. It reads the mission's state itself; at most one runs per mission over all servers. It must
   * come back within `WAKEUP_EXPIRES_S`; `signal` fires then, or at a stop. A rejection means: call again later.
   */
  readonly onWakeup: (mission: MissionId, signal: AbortSignal) => Promise<void>;
  /** Wake-ups of different missions handled at the same time; 4 by default. */
  readonly concurrency?: number;
  /** Told of failed wake-ups and of trouble with the database; the queue goes on by itself. */
  readonly onError?: (error: unknown, mission: MissionId | undefined) => void;
}

/** The running queue. */
export interface Wakeups {
  /**
   * Asks for a wake-up of a mission. With `tx` it counts only if that transaction commits, and it never runs before: a
   * wake-up already queued is held back until then. Several before one runs are one.
   */
  wake(mission: MissionId, options?: { readonly tx?: DrizzleTransactionLike }): Promise<void>;
  /** Takes no more wake-ups, waits up to `timeoutMs` for running ones, aborts the rest and closes all connections. */
  stop(timeoutMs?: number): Promise<void>;
}

/** How long `stop` waits for running wake-ups. */
const STOP_TIMEOUT_MS = 10_000;
const DEFAULT_CONCURRENCY = 4;

/**
 * Starts the queue of wake-ups on the given database and makes its tables when they are not there.
 * Throws `wakeups_unavailable` when the database cannot be used.
 */
export async function startWakeups(options: WakeupOptions): Promise<Wakeups> {
  const onError = options.onError ?? ((): void => {});
  const boss = new PgBoss({
    ...options.connection,
    schema: QUEUE_SCHEMA,
    application_name: 'firecrew-wakeups',
    max: QUEUE_CONNECTIONS,
    useListenNotify: true,
    schedule: false,
    clock: STEADY_CLOCK,
    superviseIntervalSeconds: SUPERVISE_S,
    monitorIntervalSeconds: SUPERVISE_S,
  });
  boss.on('error', (error) => onError(error, undefined));
  try {
    await boss.start();
    await prepareQueue(boss);
    await consume(boss, options, onError);
    await setBackTimes(boss.getDb(), QUEUE_SCHEMA, WAKEUP_QUEUE);
  } catch (cause) {
    await boss.stop({ graceful: false }).catch(() => {});
    throw new CodedError('wakeups_unavailable', `the queue of wake-ups could not be started: ${messageOf(cause)}`, {
      action: 'Check that the database runs and that its role may create a schema.',
      cause,
    });
  }
  const mending = setInterval(() => {
    setBackTimes(boss.getDb(), QUEUE_SCHEMA, WAKEUP_QUEUE).catch((error: unknown) => onError(error, undefined));
  }, SUPERVISE_S * 1_000);
  return {
    wake: (mission, wake) => wakeMission(boss, mission, wake?.tx),
    stop: async (timeoutMs = STOP_TIMEOUT_MS) => {
      clearInterval(mending);
      await boss.stop({ graceful: true, timeout: timeoutMs, close: true });
    },
  };
}

async function prepareQueue(boss: PgBoss): Promise<void> {
  const settings = {
    notify: true,
    expireInSeconds: WAKEUP_EXPIRES_S,
    heartbeatSeconds: HEARTBEAT_S,
    retryLimit: RETRY_LIMIT,
    retryDelay: 1,
    retryBackoff: true,
    retryDelayMax: RETRY_DELAY_MAX_S,
    deleteAfterSeconds: 60,
  };
  // One queued and one active per key: what is sent while one runs is run after it.
  await boss.createQueue(WAKEUP_QUEUE, { policy: 'stately', ...settings });
  await boss.updateQueue(WAKEUP_QUEUE, settings);
}

async function consume(boss: PgBoss, options: WakeupOptions, onError: NonNullable<WakeupOptions['onError']>): Promise<void> {
  // A worker looks again right after each wake-up: one notice may stand for many, and a queued one of the
  // same mission becomes free only now.
  const lookAgain = (): void => {
    for (const id of workers) boss.notifyWorker(id);
  };
  const workers: string[] = [];
  for (let index = 0; index < (options.concurrency ?? DEFAULT_CONCURRENCY); index += 1) {
    const id = await boss.work<unknown>(
      WAKEUP_QUEUE,
      { batchSize: 1, pollingIntervalSeconds: POLL_S, notifyPollingIntervalSeconds: POLL_S },
      async ([job]) => {
        if (job !== undefined) await handle(job, options.onWakeup, onError).finally(lookAgain);
      },
    );
    workers.push(id);
  }
}

async function handle(
  job: Job<unknown>,
  onWakeup: WakeupOptions['onWakeup'],
  onError: NonNullable<WakeupOptions['onError']>,
): Promise<void> {
  const mission = missionOf(job.data);
  if (mission === undefined) {
    onError(new CodedError('wakeup_invalid', `wake-up ${job.id} names no mission`, { id: job.id }), undefined);
    return;
  }
  try {
    await onWakeup(mission, job.signal);
  } catch (error) {
    onError(error, mission);
    throw error;
  }
}

function missionOf(data: unknown): MissionId | undefined {
  if (typeof data !== 'object' || data === null || !('mission' in data) || typeof data.mission !== 'string') return undefined;
  return parseId('mission', data.mission);
}

async function wakeMission(boss: PgBoss, mission: MissionId, tx: DrizzleTransactionLike | undefined): Promise<void> {
  // An update of a queued wake-up, not "there is one already": its row stays locked until the caller's transaction ends, so no
  // worker can take it, see the state before the commit, and leave the commit without a wake-up. Times of retries are brought forward.
  await boss.upsert(
    WAKEUP_QUEUE,
    { mission },
    {
      singletonKey: mission,
      startAfter: 0,
      ...(tx === undefined ? {} : { db: fromDrizzle(tx, sql) }),
    },
  );
}
