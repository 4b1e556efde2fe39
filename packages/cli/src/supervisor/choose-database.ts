import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { DatabaseContents } from '@firecrew/store';
import type { Home } from '../home/open-home.ts';
import { cleanLine } from '../render/clean-text.ts';
import type { DatabaseChoice } from '../settings/read-settings.ts';
import type { Settings } from '../settings/settings.ts';
import {
  type DatabaseAddress,
  type DatabaseFinding,
  type DatabaseRefusal,
  type DatabaseSetting,
  decideDatabase,
  type HomeDatabase,
  OWN_DATABASE,
} from './decide-database.ts';
import { hasOwnCluster, readHomeDatabase, rememberHomeDatabase } from './home-database.ts';
import { readJoined } from './service-config.ts';

/** One to decide, one after a look, and a few for calls that remember at the same moment. */
const ROUNDS_MAX = 8;

/** What the caller says about the database. */
export interface DatabaseCall {
  readonly settings: Settings;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether `databaseUrl` of the settings comes from the command line. */
  readonly databaseFlag?: boolean | undefined;
  /** Told what a person must know about the choice, one line each. */
  readonly onNote?: ((text: string) => void) | undefined;
}

/** Looks at the database of a URL; throws coded errors. */
export type InspectDatabase = (url: string) => Promise<DatabaseContents>;

/** What was seen of the database that `DATABASE_URL` names. */
interface Look {
  readonly finding: DatabaseFinding;
  /** More about it: a table, another installation, or why it cannot be used. */
  readonly detail: string;
}

/** What settings and environment name; the URLs hold passwords. */
interface Named {
  readonly explicit: { readonly database: HomeDatabase; readonly choice: DatabaseChoice } | undefined;
  readonly ambient: { readonly address: DatabaseAddress; readonly url: string } | { readonly unreadable: string } | undefined;
}

/**
 * The database with which the services of a home are started; the home remembers it. Where it is the one that `DATABASE_URL` names, that is
 * looked at before it is used for the first time. Throws `database_not_named`, `database_unreachable`, `database_too_old`,
 * `database_url_invalid`, `home_mismatch`, `home_damaged`.
 */
export async function chooseDatabase(home: Home, call: DatabaseCall, inspect: InspectDatabase = inspectUrl): Promise<DatabaseChoice> {
  if (readJoined(home) !== undefined) return { kind: 'own' };
  const { explicit, ambient } = await readNamed(call);
  let look: Look | undefined;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const remembered = readHomeDatabase(home.paths);
    const decision = decideDatabase({
      explicit: explicit?.database,
      ambient: ambient === undefined ? undefined : 'unreadable' in ambient ? 'unreadable' : ambient.address,
      remembered,
      hasOwnCluster: hasOwnCluster(home.paths),
      found: look?.finding,
    });
    const seen: Seen = { home, remembered, ambient, look };
    if (decision.act === 'refuse') throw refusal(decision.reason, seen);
    if (decision.act === 'inspect') {
      if (ambient !== undefined && 'url' in ambient) look = await lookAt(ambient.url, home.homeId, inspect);
      continue;
    }
    // Another call may have been first: what it has chosen is then the home's.
    if (decision.remember && !rememberHomeDatabase(home.paths, decision.database, remembered)) continue;
    if (decision.say !== undefined) call.onNote?.(NOTES[decision.say](decision.database, seen));
    if (decision.database.kind === 'own') return { kind: 'own' };
    if (explicit !== undefined) return explicit.choice;
    if (ambient !== undefined && 'url' in ambient) return { kind: 'url', url: ambient.url };
  }
  const { homeDatabase } = home.paths;
  throw new CodedError('home_damaged', `${homeDatabase} is another one each time it is read`, {
    id: homeDatabase,
    action: 'End what writes to it, and run the command again.',
  });
}

async function readNamed({ settings, env, databaseFlag }: DatabaseCall): Promise<Named> {
  const { databaseUrl } = settings;
  if (databaseUrl !== undefined) {
    const ofEnvironment = env.FIRECREW_DATABASE_URL !== undefined && env.FIRECREW_DATABASE_URL !== '';
    const namedBy: DatabaseSetting = databaseFlag ? '--database-url' : ofEnvironment ? 'FIRECREW_DATABASE_URL' : 'databaseUrl';
    if (databaseUrl === OWN_DATABASE)
      return { explicit: { database: { kind: 'own', namedBy }, choice: { kind: 'own' } }, ambient: undefined };
    const { readDatabasePlace } = await import('@firecrew/store');
    const database: HomeDatabase = { kind: 'url', ...readDatabasePlace(databaseUrl), namedBy };
    return { explicit: { database, choice: { kind: 'url', url: databaseUrl } }, ambient: undefined };
  }
  // Anything else is of an application that uses another kind of database.
  if (env.DATABASE_URL === undefined || !/^postgres(ql)?:\/\//.test(env.DATABASE_URL)) return { explicit: undefined, ambient: undefined };
  const { pinDatabaseUrl } = await import('@firecrew/store');
  try {
    const { url, place } = pinDatabaseUrl(env.DATABASE_URL);
    return { explicit: undefined, ambient: { address: place, url } };
  } catch (error) {
    return { explicit: undefined, ambient: { unreadable: messageOf(error) } };
  }
}

async function inspectUrl(url: string): Promise<DatabaseContents> {
  return await (await import('@firecrew/store')).inspectDatabase(url);
}

async function lookAt(url: string, homeId: string, inspect: InspectDatabase): Promise<Look> {
  try {
    const contents = await inspect(url);
    if (contents.kind === 'empty') return { finding: 'empty', detail: '' };
    if (contents.kind === 'foreign') return { finding: 'foreign', detail: contents.table };
    const isOurs = contents.homeId === undefined || contents.homeId === homeId;
    return isOurs ? { finding: 'ours', detail: '' } : { finding: 'other_home', detail: contents.homeId ?? '' };
  } catch (error) {
    return { finding: codeOf(error) === 'database_too_old' ? 'too_old' : 'unreachable', detail: messageOf(error) };
  }
}

/** What notes and errors are made of. */
interface Seen {
  readonly home: Home;
  readonly remembered: HomeDatabase | undefined;
  readonly ambient: Named['ambient'];
  readonly look: Look | undefined;
}

/** How a database is called: `HOST:PORT/NAME`, never with what lets one in. */
function nameOf(database: DatabaseAddress | HomeDatabase): string {
  if ('kind' in database && database.kind === 'own') return 'its own PostgreSQL';
  const { host, port, database: name } = database;
  return cleanLine(`${host.includes(':') ? `[${host}]` : host}:${port}/${name}`, 300);
}

function ambientName({ ambient }: Seen): string {
  return ambient !== undefined && 'address' in ambient ? nameOf(ambient.address) : 'no database';
}

const NOTES: Readonly<Record<'adopted' | 'moved' | 'foreign', (database: HomeDatabase, seen: Seen) => string>> = {
  adopted: (database) =>
    `this home uses the database ${nameOf(database)} from now on, as DATABASE_URL says; FIRECREW_DATABASE_URL=own gives it one of its own`,
  moved: (database, { remembered }) =>
    `this home used ${nameOf(remembered ?? { kind: 'own', namedBy: null })} before; from now on it uses ${nameOf(database)}, as ${database.namedBy} says, and nothing is copied`,
  foreign: (_database, seen) =>
    `DATABASE_URL names ${ambientName(seen)}, which holds tables of another application (${cleanLine(seen.look?.detail ?? '', 200)}): this home uses its own PostgreSQL; set FIRECREW_DATABASE_URL to that URL to use it all the same`,
};

function refusal(reason: DatabaseRefusal, seen: Seen): CodedError {
  const { home, remembered, ambient, look } = seen;
  const id = home.paths.root;
  const name = ambientName(seen);
  const detail = cleanLine(look?.detail ?? '', 1_000);
  switch (reason) {
    case 'database_not_named': {
      const before = remembered === undefined ? 'another one' : `${nameOf(remembered)}, which ${remembered.namedBy} named`;
      const now = ambient === undefined ? 'no setting names it now' : `DATABASE_URL names ${name} now`;
      return new CodedError('database_not_named', `the database of the home ${id} is ${before}, and ${now}`, {
        id,
        action: `Set FIRECREW_DATABASE_URL to its URL; for a database of the home's own, without what is in that one, set it to own.`,
      });
    }
    case 'database_unreachable':
      return new CodedError('database_unreachable', `the database ${name}, which DATABASE_URL names, cannot be used: ${detail}`, {
        id,
        action: 'Start it, or give this home a database of its own with FIRECREW_DATABASE_URL=own.',
      });
    case 'database_too_old':
      return new CodedError('database_too_old', `the database ${name}, which DATABASE_URL names, cannot be used: ${detail}`, {
        id,
        action: 'Name one of PostgreSQL 13 or newer, or give this home a database of its own with FIRECREW_DATABASE_URL=own.',
      });
    case 'database_url_invalid': {
      const why = ambient !== undefined && 'unreadable' in ambient ? ambient.unreadable : '';
      return new CodedError('database_url_invalid', `DATABASE_URL is a URL of PostgreSQL and cannot be read: ${why}`, {
        id,
        action: 'Correct it, or give this home a database of its own with FIRECREW_DATABASE_URL=own.',
      });
    }
    case 'home_mismatch':
      return new CodedError('home_mismatch', `the database ${name}, which DATABASE_URL names, belongs to the installation ${detail}`, {
        id,
        action: 'Use the home folder of that database, or give this home a database of its own with FIRECREW_DATABASE_URL=own.',
      });
  }
}
