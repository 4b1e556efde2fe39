/** The value of a setting that means the home's own PostgreSQL, whatever `DATABASE_URL` says. */
export const OWN_DATABASE = 'own';

/** The settings that can name a database; the last one is not ours alone. */
export const DATABASE_SETTINGS = ['--database-url', 'FIRECREW_DATABASE_URL', 'databaseUrl', 'DATABASE_URL'] as const;
export type DatabaseSetting = (typeof DATABASE_SETTINGS)[number];

/** A database on a server of the operator's: where it is, and nothing that lets one in. */
export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
}

/** The database of a home, and the setting that named it; null where none did. */
export type HomeDatabase =
  | { readonly kind: 'own'; readonly namedBy: DatabaseSetting | null }
  | (DatabaseAddress & { readonly kind: 'url'; readonly namedBy: DatabaseSetting });

/** What a look at the database of `DATABASE_URL` found. */
export type DatabaseFinding = 'empty' | 'ours' | 'other_home' | 'foreign' | 'unreachable' | 'too_old';

/** Everything that the decision needs. */
export interface DatabaseView {
  /** What a setting of Firecrew's own names. */
  readonly explicit: HomeDatabase | undefined;
  /** What `DATABASE_URL` names where it is a URL of PostgreSQL; `unreadable` where it is one that cannot be read. */
  readonly ambient: DatabaseAddress | 'unreadable' | undefined;
  /** What the home used last. */
  readonly remembered: HomeDatabase | undefined;
  readonly hasOwnCluster: boolean;
  /** Undefined before anybody looked. */
  readonly found: DatabaseFinding | undefined;
}

/** Why no database can be used, as an error code. */
export type DatabaseRefusal = 'database_not_named' | 'database_unreachable' | 'database_too_old' | 'database_url_invalid' | 'home_mismatch';

/** `inspect`: look at the database of `DATABASE_URL`, and ask again. `say` is what a person must be told of. */
export type DatabaseDecision =
  | {
      readonly act: 'use';
      readonly database: HomeDatabase;
      /** Whether the home's memory says something else so far. */
      readonly remember: boolean;
      readonly say: 'adopted' | 'moved' | 'foreign' | undefined;
    }
  | { readonly act: 'inspect' }
  | { readonly act: 'refuse'; readonly reason: DatabaseRefusal };

/**
 * Which database a home uses. A setting of ours wins; a home keeps the database it has; `DATABASE_URL`, which may be that of any application,
 * counts for a home that has none yet and a database that is empty or Firecrew's, or where it names the one that the home has.
 */
export function decideDatabase(view: DatabaseView): DatabaseDecision {
  const { explicit, ambient, remembered, hasOwnCluster, found } = view;
  // Homes from before there was a memory have their own, or none.
  const before = remembered ?? (hasOwnCluster ? ownDatabase : undefined);
  const use = (database: HomeDatabase, say?: 'adopted' | 'moved' | 'foreign'): DatabaseDecision => {
    const remember = remembered === undefined || !isSameDatabase(remembered, database) || remembered.namedBy !== database.namedBy;
    return { act: 'use', database, remember, say };
  };
  if (explicit !== undefined) return use(explicit, before === undefined || isSameDatabase(before, explicit) ? undefined : 'moved');
  if (before?.kind === 'own') return use(before);
  const named = typeof ambient === 'object' ? ambientDatabase(ambient) : undefined;
  if (before !== undefined) {
    if (named !== undefined && isSameDatabase(before, named)) return use(named);
    return { act: 'refuse', reason: 'database_not_named' };
  }
  if (ambient === undefined) return use(ownDatabase);
  if (named === undefined) return { act: 'refuse', reason: 'database_url_invalid' };
  switch (found) {
    case undefined:
      return { act: 'inspect' };
    case 'empty':
    case 'ours':
      return use(named, 'adopted');
    case 'foreign':
      return use(ownDatabase, 'foreign');
    case 'other_home':
      return { act: 'refuse', reason: 'home_mismatch' };
    case 'too_old':
      return { act: 'refuse', reason: 'database_too_old' };
    case 'unreachable':
      return { act: 'refuse', reason: 'database_unreachable' };
  }
}

const ownDatabase: HomeDatabase = { kind: 'own', namedBy: null };

/** What `DATABASE_URL` names, as the database of a home. */
function ambientDatabase({ host, port, database }: DatabaseAddress): HomeDatabase {
  return { kind: 'url', host, port, database, namedBy: 'DATABASE_URL' };
}

/** Whether two homes would use one database, whatever named it. */
function isSameDatabase(a: HomeDatabase, b: HomeDatabase): boolean {
  if (a.kind === 'own' || b.kind === 'own') return a.kind === b.kind;
  return a.host === b.host && a.port === b.port && a.database === b.database;
}
