import { CodedError, messageOf } from '@firecrew/base';
import { type ConnectionOptions, parse } from 'pg-connection-string';

/** Which database a URL names; nothing that lets one in. Two URLs with equal places name the same database. */
export interface DatabasePlace {
  /** A name or address in lower case, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** Empty where the URL names neither a database nor a user. */
  readonly database: string;
}

/** What the `pg` driver takes where a URL says nothing and no PG variable is set. */
const DEFAULT_HOST = 'localhost';
const DEFAULT_PORT = 5432;

/** The place that a `postgres://` or `postgresql://` URL names. Throws `database_url_invalid`, without the URL in the message. */
export function readDatabasePlace(url: string): DatabasePlace {
  const { host, port, database, user } = readUrl(url);
  const number = port === undefined || port === null || port === '' ? DEFAULT_PORT : Number(port);
  if (!Number.isInteger(number) || number < 1 || number > 65_535) throw invalid('its port is no number between 1 and 65535');
  const name = host === null || host === '' ? DEFAULT_HOST : host;
  return { host: name.startsWith('/') ? name : name.toLowerCase(), port: number, database: database || user || '' };
}

/**
 * The URL with host and port written out, and its place: PG variables, which differ between processes, then change nothing about where it
 * leads. Throws `database_url_invalid`, also where the URL names no database.
 */
export function pinDatabaseUrl(url: string): { readonly url: string; readonly place: DatabasePlace } {
  const place = readDatabasePlace(url);
  const { host, port, database } = readUrl(url);
  if (!database) throw invalid('it names no database');
  const missing = new URLSearchParams();
  if (!host) missing.set('host', place.host);
  if (!port) missing.set('port', String(place.port));
  // The driver reads nothing behind the first #.
  const [bare = ''] = url.split('#', 1);
  return { url: missing.size === 0 ? bare : `${bare}${bare.includes('?') ? '&' : '?'}${missing.toString()}`, place };
}

function readUrl(url: string): ConnectionOptions {
  if (!/^postgres(ql)?:\/\//.test(url)) throw invalid('it does not begin with postgres:// or postgresql://');
  try {
    // Settings of TLS say nothing about the place, and reading them would open the files they name.
    return parse(url.replace(/([?&])ssl[a-z]*=[^&#]*/gi, '$1'));
  } catch (cause) {
    throw invalid(messageOf(cause));
  }
}

function invalid(why: string): CodedError {
  return new CodedError('database_url_invalid', `the database URL cannot be used: ${why}`, {
    action: 'Set FIRECREW_DATABASE_URL to postgresql://USER:PASSWORD@HOST/NAME.',
  });
}
