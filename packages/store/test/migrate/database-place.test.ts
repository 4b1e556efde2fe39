import { describe, expect, it } from 'vitest';
import { pinDatabaseUrl, readDatabasePlace } from '../../src/migrate/database-place.ts';
import { connectionUrl } from '../../src/postgres/start-postgres.ts';

const socket = connectionUrl({ host: '/run/My db', port: 5433, user: 'u', password: 'p@/#?', database: 'näme' });

/** [the URL, the place it names, what is added when it is pinned; undefined where it names no database] */
const PLACES: readonly (readonly [string, object, string | undefined])[] = [
  ['postgresql://u:p@db.example:6543/team', { host: 'db.example', port: 6543, database: 'team' }, ''],
  ['postgres://u:p@DB.Example/Team', { host: 'db.example', port: 5432, database: 'Team' }, '?port=5432'],
  ['postgres://u:p@[::1]:1/x', { host: '::1', port: 1, database: 'x' }, ''],
  ['postgres://u:p@/x', { host: 'localhost', port: 5432, database: 'x' }, '?host=localhost&port=5432'],
  ['postgres:///x?application_name=a', { host: 'localhost', port: 5432, database: 'x' }, '&host=localhost&port=5432'],
  ['postgres://u@db/a%20b', { host: 'db', port: 5432, database: 'a b' }, '?port=5432'],
  ['postgres://u@db/x?sslmode=require&sslrootcert=/none/ca.pem', { host: 'db', port: 5432, database: 'x' }, '&port=5432'],
  ['postgres://u@db/x?host=other&port=7', { host: 'other', port: 7, database: 'x' }, ''],
  ['postgres://u:p@%2Fvar%2Frun/x', { host: '/var/run', port: 5432, database: 'x' }, '?port=5432'],
  [socket, { host: '/run/My db', port: 5433, database: 'näme' }, ''],
  ['postgres://team@db', { host: 'db', port: 5432, database: 'team' }, undefined],
  ['postgres://db', { host: 'db', port: 5432, database: '' }, undefined],
];

describe('a database URL', () => {
  it.each(PLACES)('%s names its place', (url, place, added) => {
    expect(readDatabasePlace(url)).toEqual(place);
    if (added === undefined) expect(() => pinDatabaseUrl(url)).toThrow(expect.objectContaining({ code: 'database_url_invalid' }));
    else {
      expect(pinDatabaseUrl(url)).toEqual({ url: `${url}${added}`, place });
      // Pinned once, nothing is left to say.
      expect(pinDatabaseUrl(pinDatabaseUrl(url).url).url).toBe(`${url}${added}`);
    }
  });

  it.each([
    'mysql://u:secret@h/x',
    'postgres:secret',
    'postgres://u:secret@h:port/x',
    'postgres://u:secret@h/x?port=0',
    'postgres://u:secret@h/x?port=70000',
    'postgres://u:secret@h/x?port=7a',
    'postgres://u:secret@h/%ff',
    'postgres://u:secret@h1,h 2:1:2/x',
  ])('that cannot be used is refused, and not repeated: %s', (url) => {
    let error: unknown;
    try {
      readDatabasePlace(url);
    } catch (caught) {
      error = caught;
    }
    expect(error).toMatchObject({ code: 'database_url_invalid', action: expect.stringContaining('FIRECREW_DATABASE_URL') });
    expect(String(error)).not.toContain('secret');
  });
});
