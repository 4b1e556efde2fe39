import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Home, openHome } from '../src/home/open-home.ts';
import { chooseDatabase, type DatabaseCall, type InspectDatabase } from '../src/supervisor/choose-database.ts';
import { readHomeDatabase } from '../src/supervisor/home-database.ts';

const TEAM = 'postgresql://crew:s3cret@DB.example:6543/team';
const SHOP = 'postgres://app:s3cret@localhost/shop';

let folder: string;
let home: Home;
let notes: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-choose-'));
  home = openHome(join(folder, 'h'));
  notes = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const empty: InspectDatabase = async () => ({ kind: 'empty' });
const never: InspectDatabase = async () => {
  throw new Error('nobody was to look');
};

/** Chooses with `DATABASE_URL`, and with more where it is given. */
async function choose(ambient: string | undefined, inspect: InspectDatabase = never, call: Partial<DatabaseCall> = {}) {
  const env = ambient === undefined ? {} : { DATABASE_URL: ambient };
  return await chooseDatabase(home, { settings: {}, env, onNote: (text) => notes.push(text), ...call }, inspect);
}

const memory = (): string => readFileSync(home.paths.homeDatabase, 'utf8');
const makeCluster = (): void => {
  mkdirSync(home.paths.dataDir, { recursive: true });
  writeFileSync(join(home.paths.dataDir, 'PG_VERSION'), '18\n');
};

describe('the choice of a database', () => {
  it('is the own one of a home where nothing names another, and nothing is said', async () => {
    expect(await choose(undefined)).toEqual({ kind: 'own' });
    expect([JSON.parse(memory()), notes]).toEqual([{ kind: 'own', namedBy: null }, []]);
  });

  it('is remembered for this account alone, without user and password', async () => {
    expect(await choose(TEAM, empty)).toEqual({ kind: 'url', url: TEAM });
    expect(statSync(home.paths.homeDatabase).mode & 0o777).toBe(0o600);
    expect(JSON.parse(memory())).toEqual({ kind: 'url', host: 'db.example', port: 6543, database: 'team', namedBy: 'DATABASE_URL' });
    expect(notes).toEqual([expect.stringMatching(/db\.example:6543\/team.*DATABASE_URL.*FIRECREW_DATABASE_URL=own/)]);
    expect(notes.join()).not.toMatch(/s3cret|crew:/);
  });

  it('is looked at once, where it leads whatever PG variables say', async () => {
    const looked: string[] = [];
    const inspect: InspectDatabase = async (url) => {
      looked.push(url);
      return { kind: 'empty' };
    };
    const pinned = { kind: 'url', url: `${SHOP}?port=5432` };
    expect([await choose(SHOP, inspect), await choose(SHOP, inspect)]).toEqual([pinned, pinned]);
    expect([looked, notes.length]).toEqual([[pinned.url], 1]);
  });

  it.each(['mysql://root@localhost/shop', 'file:./dev.db', 'prisma+postgres://localhost/?api_key=x', '', 'shop'])(
    'takes no notice of the DATABASE_URL of another kind: %s',
    async (url) => {
      expect([await choose(url), notes]).toEqual([{ kind: 'own' }, []]);
    },
  );

  it('leaves the database of another application alone, and says so once', async () => {
    const foreign: InspectDatabase = async () => ({ kind: 'foreign', table: 'public.\u001b[31musers' });
    expect(await choose(SHOP, foreign)).toEqual({ kind: 'own' });
    expect(notes).toEqual([expect.stringMatching(/localhost:5432\/shop.*\(public\.users\).*own PostgreSQL.*FIRECREW_DATABASE_URL/)]);
    expect(await choose(SHOP)).toEqual({ kind: 'own' });
    expect(notes).toHaveLength(1);
  });

  it.each<[string, string, InspectDatabase, string, RegExp]>([
    ['does not answer', TEAM, () => Promise.reject(new CodedError('database_unreachable', 'no route')), 'database_unreachable', /no route/],
    ['fails in another way', TEAM, () => Promise.reject(new Error('odd')), 'database_unreachable', /odd/],
    ['is too old', TEAM, () => Promise.reject(new CodedError('database_too_old', 'it is 12')), 'database_too_old', /12/],
    ['is of another home', TEAM, async () => ({ kind: 'firecrew', homeId: 'home_other' }), 'home_mismatch', /home_other/],
    ['cannot be read', 'postgres://u:s3cret@db:port/x', never, 'database_url_invalid', /DATABASE_URL/],
    ['names no database', 'postgres://u:s3cret@db', never, 'database_url_invalid', /no database/],
  ])('is refused for one that %s, with both ways out, and nothing is remembered', async (_what, url, inspect, code, message) => {
    const error: unknown = await choose(url, inspect).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code,
      message: expect.stringMatching(message),
      action: expect.stringContaining('FIRECREW_DATABASE_URL=own'),
    });
    expect(JSON.stringify(error) + String(error)).not.toContain('s3cret');
    expect(readHomeDatabase(home.paths)).toBeUndefined();
    const own = { settings: { databaseUrl: 'own' }, env: { DATABASE_URL: url, FIRECREW_DATABASE_URL: 'own' } };
    expect(await choose(url, never, own)).toEqual({ kind: 'own' });
    expect(JSON.parse(memory())).toEqual({ kind: 'own', namedBy: 'FIRECREW_DATABASE_URL' });
  });

  it('takes a database of Firecrew that no server has used yet, or this home', async () => {
    expect(await choose(TEAM, async () => ({ kind: 'firecrew', homeId: undefined }))).toEqual({ kind: 'url', url: TEAM });
    rmSync(home.paths.homeDatabase);
    expect(await choose(TEAM, async () => ({ kind: 'firecrew', homeId: home.homeId }))).toEqual({ kind: 'url', url: TEAM });
  });

  it('is never another one than the home remembers', async () => {
    await choose(TEAM, empty);
    for (const other of [undefined, SHOP, 'postgres://x']) {
      const error: unknown = await choose(other, empty).catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        code: 'database_not_named',
        id: home.paths.root,
        message: expect.stringContaining('db.example:6543/team, which DATABASE_URL named'),
        action: expect.stringMatching(/FIRECREW_DATABASE_URL.*own/),
      });
      expect(JSON.stringify(error) + String(error)).not.toContain('s3cret');
    }
    expect(await choose(TEAM.replace('s3cret', 'another'))).toMatchObject({ kind: 'url' });
  });

  it('follows a setting of ours to another database, and says so', async () => {
    await choose(TEAM, empty);
    notes = [];
    const call = { settings: { databaseUrl: SHOP }, env: { FIRECREW_DATABASE_URL: SHOP } };
    expect([await choose(undefined, never, call), await choose(undefined, never, call)]).toEqual([
      { kind: 'url', url: SHOP },
      { kind: 'url', url: SHOP },
    ]);
    expect(notes).toEqual([
      expect.stringMatching(/used db\.example:6543\/team before.*localhost:5432\/shop, as FIRECREW_DATABASE_URL says/),
    ]);
  });

  it.each([
    ['--database-url', { databaseFlag: true, env: { FIRECREW_DATABASE_URL: SHOP } }],
    ['FIRECREW_DATABASE_URL', { env: { FIRECREW_DATABASE_URL: TEAM } }],
    ['databaseUrl', { env: { FIRECREW_DATABASE_URL: '' } }],
  ])('says that %s named it', async (namedBy, call) => {
    await choose(undefined, never, { settings: { databaseUrl: TEAM }, ...call });
    expect(JSON.parse(memory())).toMatchObject({ namedBy });
  });

  it('is its own database for a home from before there was a memory', async () => {
    makeCluster();
    expect([await choose(TEAM), notes]).toEqual([{ kind: 'own' }, []]);
    expect(JSON.parse(memory())).toEqual({ kind: 'own', namedBy: null });
  });

  it('is not made for a node of another server', async () => {
    writeFileSync(home.paths.joinFile, JSON.stringify({ serverUrl: 'http://127.0.0.1:1', nodeId: 'node_x', name: 'n' }));
    expect(await choose(TEAM)).toEqual({ kind: 'own' });
    expect(readHomeDatabase(home.paths)).toBeUndefined();
  });

  it('of two calls at once is that of the first one', async () => {
    // While one looks at the database of its DATABASE_URL, another one without any has begun.
    const late: InspectDatabase = async () => {
      await choose(undefined);
      return { kind: 'empty' };
    };
    expect(await choose(TEAM, late)).toEqual({ kind: 'own' });
    expect([JSON.parse(memory()), notes]).toEqual([{ kind: 'own', namedBy: null }, []]);
  });

  it('of two calls at the same moment is that of the first one', async () => {
    const own = '{"kind":"own","namedBy":null}';
    const { paths } = home;
    // Another process remembers between our look into the memory and our own entry.
    home = {
      ...home,
      paths: {
        ...paths,
        get dataDir() {
          writeFileSync(paths.homeDatabase, own);
          return paths.dataDir;
        },
      },
    };
    await choose(undefined, never, { settings: { databaseUrl: TEAM }, env: { FIRECREW_DATABASE_URL: TEAM } });
    expect(notes).toEqual([expect.stringContaining('used its own PostgreSQL before')]);
  });

  it.each(['', '{"kind":"url"', '{"kind":"url","host":"db"}', '{"kind":"own","namedBy":null,"password":"x"}'])(
    'is refused where what the home remembers cannot be read: %s',
    async (text) => {
      writeFileSync(home.paths.homeDatabase, text);
      await expect(choose(TEAM, empty)).rejects.toMatchObject({
        code: 'home_damaged',
        message: expect.stringContaining('is not what firecrew writes'),
      });
      expect(memory()).toBe(text);
    },
  );
});
