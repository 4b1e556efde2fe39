/** What a supervisor keeps running. */
export const ROLES = ['database', 'server', 'nodeAgent'] as const;
export type Role = (typeof ROLES)[number];

/** Pauses before a role that ended is started again, in ms; the last one is repeated. */
export const RESTART_PAUSES_MS: readonly number[] = [0, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000];
/** A role that ran this long ended by an accident, not by its own fault: its pauses begin anew. In ms. */
export const STEADY_AFTER_MS = 60_000;
/** How long a new server may take until it is ready, and how long an old one may be unready while its database is there, in ms. */
export const SERVER_START_MS = 120_000;
export const SERVER_UNREADY_MS = 30_000;

/** One role, as its supervisor sees it now. */
export interface RoleView {
  readonly wanted: boolean;
  readonly alive: boolean;
  /** Being started or stopped: nothing is decided meanwhile. */
  readonly busy: boolean;
  /** Ends in a row. */
  readonly failures: number;
  readonly endedAtMs: number | undefined;
}

/** Everything that a decision needs. */
export interface SupervisionView {
  readonly nowMs: number;
  readonly roles: Readonly<Record<Role, RoleView>>;
  /** Since when the server lives and has not been ready; undefined while it is. */
  readonly unreadySinceMs: number | undefined;
  /** Whether this server has ever been ready. */
  readonly wasReady: boolean;
}

/** What is to be done now. */
export type SupervisionStep =
  | { readonly act: 'start'; readonly role: Role }
  | { readonly act: 'replace'; readonly role: 'server'; readonly why: string };

/** How long a role that ended `failures` times in a row is left alone, in ms. */
export function restartPause(failures: number): number {
  return RESTART_PAUSES_MS[Math.min(failures, RESTART_PAUSES_MS.length) - 1] ?? 0;
}

/** The number of ends in a row after one more, of a role that lived `livedMs`. */
export function countFailure(failures: number, livedMs: number): number {
  return livedMs >= STEADY_AFTER_MS ? 1 : failures + 1;
}

/** The steps that are due. A server waits for its database; a node agent waits for nobody, since it redials by itself. */
export function decideSupervision(view: SupervisionView): SupervisionStep[] {
  const steps: SupervisionStep[] = [];
  const due = (role: Role): boolean => {
    const { wanted, alive, busy, failures, endedAtMs } = view.roles[role];
    if (!wanted || alive || busy) return false;
    return endedAtMs === undefined || view.nowMs - endedAtMs >= restartPause(failures);
  };
  const database = view.roles.database;
  const databaseThere = !database.wanted || (database.alive && !database.busy);
  if (due('database')) steps.push({ act: 'start', role: 'database' });
  if (databaseThere && due('server')) steps.push({ act: 'start', role: 'server' });
  if (due('nodeAgent')) steps.push({ act: 'start', role: 'nodeAgent' });
  const server = view.roles.server;
  if (server.alive && !server.busy && databaseThere && view.unreadySinceMs !== undefined) {
    const limit = view.wasReady ? SERVER_UNREADY_MS : SERVER_START_MS;
    if (view.nowMs - view.unreadySinceMs >= limit) steps.push({ act: 'replace', role: 'server', why: `not ready for ${limit / 1000} s` });
  }
  return steps;
}

/** The last use of a home, as its supervisor saw it: the time that the file of last uses says, and when that was new, on the supervisor's clock. */
export interface SeenUse {
  readonly mark: number | undefined;
  readonly atMs: number;
}

/** The last use after a look at `nowMs`. What the file says is only ever compared with itself: whoever touched it may have had another time. */
export function seeUse(seen: SeenUse | undefined, mark: number | undefined, nowMs: number): SeenUse {
  return seen !== undefined && seen.mark === mark ? seen : { mark, atMs: nowMs };
}

/** Whether services that nobody asked to keep are to stop: not used for the term, and no mission runs. */
export function isIdle(view: { keep: boolean; lastUseAtMs: number; nowMs: number; idleStopMs: number; busy: boolean }): boolean {
  return !view.keep && !view.busy && view.nowMs - view.lastUseAtMs >= view.idleStopMs;
}

/**
 * Why a caller that waits need not wait on: a problem of database or server that was not there when it began; a node agent may come later.
 * Told apart by what they say, not by their times, which a clock that was set since would put in another order.
 */
export function newProblem<Problem extends { readonly role: Role }>(
  before: readonly Problem[],
  now: readonly Problem[],
): Problem | undefined {
  const known = new Set(before.map((problem) => JSON.stringify(problem)));
  return now.find((problem) => problem.role !== 'nodeAgent' && !known.has(JSON.stringify(problem)));
}
