import { describe, expect, it } from 'vitest';
import {
  type DatabaseAddress,
  type DatabaseDecision,
  type DatabaseFinding,
  type DatabaseView,
  decideDatabase,
  type HomeDatabase,
} from '../src/supervisor/decide-database.ts';

const TEAM: DatabaseAddress = { host: 'db', port: 5432, database: 'team' };
const SHOP: DatabaseAddress = { host: 'db', port: 5432, database: 'shop' };

const OWN: HomeDatabase = { kind: 'own', namedBy: null };
const OWN_SET: HomeDatabase = { kind: 'own', namedBy: 'FIRECREW_DATABASE_URL' };
const TEAM_SET: HomeDatabase = { kind: 'url', ...TEAM, namedBy: 'FIRECREW_DATABASE_URL' };
const TEAM_FLAG: HomeDatabase = { kind: 'url', ...TEAM, namedBy: '--database-url' };
const TEAM_AMBIENT: HomeDatabase = { kind: 'url', ...TEAM, namedBy: 'DATABASE_URL' };
const SHOP_SET: HomeDatabase = { kind: 'url', ...SHOP, namedBy: 'FIRECREW_DATABASE_URL' };

const FRESH: DatabaseView = { explicit: undefined, ambient: undefined, remembered: undefined, hasOwnCluster: false, found: undefined };
const use = (database: HomeDatabase, remember: boolean, say?: 'adopted' | 'moved' | 'foreign'): DatabaseDecision => {
  return { act: 'use', database, remember, say };
};

/** [the home and its call, what differs from a fresh home without a setting, the decision] */
const TABLE: readonly (readonly [string, Partial<DatabaseView>, DatabaseDecision])[] = [
  ['a fresh home', {}, use(OWN, true)],
  ['a fresh home, a setting', { explicit: TEAM_SET }, use(TEAM_SET, true)],
  ['a fresh home, own', { explicit: OWN_SET }, use(OWN_SET, true)],
  ['a fresh home, a setting over DATABASE_URL', { explicit: TEAM_SET, ambient: SHOP }, use(TEAM_SET, true)],
  ['a fresh home, own over DATABASE_URL', { explicit: OWN_SET, ambient: TEAM }, use(OWN_SET, true)],
  ['a fresh home, own over a DATABASE_URL that cannot be read', { explicit: OWN_SET, ambient: 'unreadable' }, use(OWN_SET, true)],

  ['a home that remembers its own', { remembered: OWN, hasOwnCluster: true }, use(OWN, false)],
  ['the same, DATABASE_URL', { remembered: OWN, hasOwnCluster: true, ambient: TEAM }, use(OWN, false)],
  ['the same, a DATABASE_URL that cannot be read', { remembered: OWN, hasOwnCluster: true, ambient: 'unreadable' }, use(OWN, false)],
  ['its own without data yet, DATABASE_URL', { remembered: OWN, ambient: TEAM, found: 'empty' }, use(OWN, false)],
  ['its own, own', { remembered: OWN, hasOwnCluster: true, explicit: OWN_SET }, use(OWN_SET, true)],
  ['its own, a setting', { remembered: OWN, hasOwnCluster: true, explicit: TEAM_SET }, use(TEAM_SET, true, 'moved')],

  ['a home from before there was a memory', { hasOwnCluster: true }, use(OWN, true)],
  ['the same, DATABASE_URL', { hasOwnCluster: true, ambient: TEAM }, use(OWN, true)],
  ['the same, an empty DATABASE_URL', { hasOwnCluster: true, ambient: TEAM, found: 'empty' }, use(OWN, true)],
  ['the same, own', { hasOwnCluster: true, explicit: OWN_SET }, use(OWN_SET, true)],
  ['the same, a setting', { hasOwnCluster: true, explicit: TEAM_SET }, use(TEAM_SET, true, 'moved')],

  ['a home that remembers one, its setting', { remembered: TEAM_SET, explicit: TEAM_SET }, use(TEAM_SET, false)],
  ['the same, by another setting', { remembered: TEAM_SET, explicit: TEAM_FLAG }, use(TEAM_FLAG, true)],
  ['the same, another one', { remembered: TEAM_SET, explicit: SHOP_SET }, use(SHOP_SET, true, 'moved')],
  ['the same, own', { remembered: TEAM_SET, explicit: OWN_SET }, use(OWN_SET, true, 'moved')],
  ['the same, by DATABASE_URL', { remembered: TEAM_SET, ambient: TEAM }, use(TEAM_AMBIENT, true)],
  ['the same, by DATABASE_URL again', { remembered: TEAM_AMBIENT, ambient: TEAM }, use(TEAM_AMBIENT, false)],
  ['the same beside an own one', { remembered: TEAM_AMBIENT, hasOwnCluster: true, ambient: TEAM }, use(TEAM_AMBIENT, false)],
  ['the same, nothing', { remembered: TEAM_AMBIENT }, { act: 'refuse', reason: 'database_not_named' }],
  ['the same beside an own one, nothing', { remembered: TEAM_SET, hasOwnCluster: true }, { act: 'refuse', reason: 'database_not_named' }],
  ['the same, another DATABASE_URL', { remembered: TEAM_AMBIENT, ambient: SHOP }, { act: 'refuse', reason: 'database_not_named' }],
  [
    'the same, another DATABASE_URL that is empty',
    { remembered: TEAM_AMBIENT, ambient: SHOP, found: 'empty' },
    { act: 'refuse', reason: 'database_not_named' },
  ],
  [
    'the same, a DATABASE_URL that cannot be read',
    { remembered: TEAM_AMBIENT, ambient: 'unreadable' },
    { act: 'refuse', reason: 'database_not_named' },
  ],

  ['a fresh home, a DATABASE_URL that cannot be read', { ambient: 'unreadable' }, { act: 'refuse', reason: 'database_url_invalid' }],
  ['a fresh home, DATABASE_URL', { ambient: TEAM }, { act: 'inspect' }],
  ['a fresh home, an empty DATABASE_URL', { ambient: TEAM, found: 'empty' }, use(TEAM_AMBIENT, true, 'adopted')],
  ['a fresh home, one of Firecrew', { ambient: TEAM, found: 'ours' }, use(TEAM_AMBIENT, true, 'adopted')],
  ['a fresh home, one of another home', { ambient: TEAM, found: 'other_home' }, { act: 'refuse', reason: 'home_mismatch' }],
  ['a fresh home, one of another application', { ambient: TEAM, found: 'foreign' }, use(OWN, true, 'foreign')],
  ['a fresh home, one that does not answer', { ambient: TEAM, found: 'unreachable' }, { act: 'refuse', reason: 'database_unreachable' }],
  ['a fresh home, one that is too old', { ambient: TEAM, found: 'too_old' }, { act: 'refuse', reason: 'database_too_old' }],
];

describe('the database of a home', () => {
  it.each(TABLE)('%s: %j', (_what, view, decision) => {
    expect(decideDatabase({ ...FRESH, ...view })).toEqual(decision);
  });

  it.each([
    ['host', { ...TEAM, host: 'db2' }],
    ['port', { ...TEAM, port: 5433 }],
    ['name', { ...TEAM, database: 'team2' }],
  ])('is another one by its %s alone', (_part, ambient) => {
    const view = { ...FRESH, remembered: TEAM_AMBIENT, ambient };
    expect(decideDatabase(view)).toEqual({ act: 'refuse', reason: 'database_not_named' });
  });

  it('is never one that DATABASE_URL names, but by these two ways', () => {
    const ambients = [undefined, 'unreadable', TEAM, SHOP] as const;
    const memories = [undefined, OWN, OWN_SET, TEAM_SET, TEAM_AMBIENT];
    const findings: readonly (DatabaseFinding | undefined)[] = [
      undefined,
      'empty',
      'ours',
      'other_home',
      'foreign',
      'unreachable',
      'too_old',
    ];
    let taken = 0;
    for (const explicit of [undefined, OWN_SET, TEAM_SET])
      for (const ambient of ambients)
        for (const remembered of memories)
          for (const hasOwnCluster of [false, true])
            for (const found of findings) {
              const decision = decideDatabase({ explicit, ambient, remembered, hasOwnCluster, found });
              if (decision.act !== 'use' || decision.database.namedBy !== 'DATABASE_URL') continue;
              taken += 1;
              expect(explicit).toBeUndefined();
              const isFirst = remembered === undefined && !hasOwnCluster && (found === 'empty' || found === 'ours');
              expect(isFirst || (remembered?.kind === 'url' && ambient === TEAM)).toBe(true);
            }
    // 2 first starts of 2 URLs, and TEAM again over 2 memories, 2 clusters and 7 findings.
    expect(taken).toBe(4 + 28);
  });
});
