import { describe, expect, it } from 'vitest';
import {
  countFailure,
  decideSupervision,
  isIdle,
  newProblem,
  RESTART_PAUSES_MS,
  type RoleView,
  restartPause,
  SERVER_START_MS,
  SERVER_UNREADY_MS,
  type SeenUse,
  STEADY_AFTER_MS,
  type SupervisionView,
  seeUse,
} from '../src/supervisor/decide-supervision.ts';

const UP: RoleView = { wanted: true, alive: true, busy: false, failures: 0, endedAtMs: undefined };
const NEW: RoleView = { ...UP, alive: false };
const OFF: RoleView = { ...NEW, wanted: false };
const ended = (failures: number, ago: number): RoleView => ({ ...NEW, failures, endedAtMs: 100_000 - ago });
const view = (roles: Partial<SupervisionView['roles']>, more: Partial<SupervisionView> = {}): SupervisionView => {
  return {
    nowMs: 100_000,
    roles: { database: UP, server: UP, nodeAgent: UP, ...roles },
    unreadySinceMs: undefined,
    wasReady: true,
    ...more,
  };
};
const starts = (one: SupervisionView): string[] => decideSupervision(one).map((step) => `${step.act} ${step.role}`);

/** [the situation, the view, the steps] */
const CASES: readonly (readonly [string, SupervisionView, readonly string[]])[] = [
  ['all is well', view({}), []],
  ['nothing runs yet', view({ database: NEW, server: NEW, nodeAgent: NEW }), ['start database', 'start nodeAgent']],
  ['the database has come up', view({ server: NEW }), ['start server']],
  ['the database is being started', view({ database: { ...NEW, busy: true }, server: NEW }), []],
  ['the database is elsewhere', view({ database: OFF, server: NEW }), ['start server']],
  ['this is a node alone', view({ database: OFF, server: OFF, nodeAgent: NEW }), ['start nodeAgent']],
  ['the server ended the first time', view({ server: ended(1, 0) }), ['start server']],
  ['the server ended the second time just now', view({ server: ended(2, 249) }), []],
  ['its pause is over', view({ server: ended(2, 250) }), ['start server']],
  ['the database is gone while the server lives', view({ database: ended(1, 0) }), ['start database']],
  ['the server is not ready for a short time', view({}, { unreadySinceMs: 100_000 - SERVER_UNREADY_MS + 1 }), []],
  ['the server hangs', view({}, { unreadySinceMs: 100_000 - SERVER_UNREADY_MS }), ['replace server']],
  ['a new server takes its time', view({}, { unreadySinceMs: 100_000 - SERVER_UNREADY_MS, wasReady: false }), []],
  [
    'a new server never comes up',
    view({}, { nowMs: 200_000, unreadySinceMs: 200_000 - SERVER_START_MS, wasReady: false }),
    ['replace server'],
  ],
  ['the server cannot be ready without its database', view({ database: { ...NEW, busy: true } }, { unreadySinceMs: 0 }), []],
];

describe('a supervisor', () => {
  it.each(CASES)('knows what to do when %s', (_what, one, steps) => {
    expect(starts(one)).toEqual(steps);
  });

  it('waits longer each time, up to a bound', () => {
    const pauses = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100].map(restartPause);
    expect(pauses).toEqual([...RESTART_PAUSES_MS, 30_000, 30_000]);
  });

  it('counts ends in a row, and begins anew after a steady time', () => {
    expect([countFailure(3, STEADY_AFTER_MS - 1), countFailure(3, STEADY_AFTER_MS)]).toEqual([4, 1]);
  });

  it.each([
    [{}, true],
    [{ keep: true }, false],
    [{ busy: true }, false],
    [{ lastUseAtMs: 1 }, false],
  ])('ends when nobody needs it: %j', (change, idle) => {
    expect(isIdle({ keep: false, busy: false, lastUseAtMs: 0, nowMs: 1_000, idleStopMs: 1_000, ...change })).toBe(idle);
  });

  it('counts from its own look at a use, whatever time the use says: clocks are set back and forth', () => {
    const looks: readonly (readonly [mark: number | undefined, nowMs: number, atMs: number])[] = [
      [5_000_000, 100, 100],
      [5_000_000, 200, 100],
      [1_400_000, 300, 300],
      [1_400_000, 400, 300],
      [8_600_000, 500, 500],
      [undefined, 600, 600],
      [undefined, 700, 600],
    ];
    let seen: SeenUse | undefined;
    const found = looks.map(([mark, nowMs]) => {
      seen = seeUse(seen, mark, nowMs);
      return seen.atMs;
    });
    expect(found).toEqual(looks.map(([, , atMs]) => atMs));
  });

  it('tells a waiting caller of a problem that is new, whatever time it says, and of no older one', () => {
    const problem = (role: 'database' | 'nodeAgent', at: string) => ({ role, code: 'disk_full', message: 'm', action: null, at });
    const old = problem('database', '2030-01-01T12:00:00.000Z');
    const before = problem('database', '2030-01-01T11:00:00.000Z');
    const ofNode = problem('nodeAgent', '2030-01-01T13:00:00.000Z');
    expect(newProblem([old], [old])).toBeUndefined();
    expect(newProblem([old], [])).toBeUndefined();
    expect(newProblem([old], [ofNode])).toBeUndefined();
    expect(newProblem([old], [ofNode, before])).toEqual(before);
    expect(newProblem([], [old])).toEqual(old);
  });
});
