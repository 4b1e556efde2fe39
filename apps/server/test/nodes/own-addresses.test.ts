import { describe, expect, it } from 'vitest';
import { OwnAddresses, type OwnAddressSources } from '../../src/nodes/own-addresses.ts';

function bookOf(over: Partial<OwnAddressSources> = {}) {
  const logged: unknown[] = [];
  const book = new OwnAddresses({
    databaseHost: 'db.corp.example',
    interfaces: () => ['127.0.0.1', 'fe80::1%eth0'],
    lookUp: async () => [{ address: '203.0.113.9', family: 4 }],
    askDatabase: async () => null,
    log: { error: (fields: unknown) => void logged.push(fields) },
    ...over,
  });
  return { book, logged };
}

describe('the addresses that no guest may reach', () => {
  it('are those of the server, of the name of the database, and the one at which the database was reached', async () => {
    const { book } = bookOf({ askDatabase: async () => '10.9.8.7/32' });
    expect(await book.now()).toEqual(['127.0.0.1', 'fe80::1', '203.0.113.9', '10.9.8.7']);
  });

  it('are looked up anew each time, so that a name may come to stand for others', async () => {
    let address = '203.0.113.9';
    const { book } = bookOf({ interfaces: () => [], lookUp: async () => [{ address, family: 4 }] });
    expect(await book.now()).toEqual(['203.0.113.9']);
    address = '203.0.113.10';
    expect(await book.now()).toEqual(['203.0.113.10']);
  });

  it.each([
    ['cannot be looked up', async () => Promise.reject(new Error('getaddrinfo EAI_AGAIN'))],
    ['has no address', async () => []],
  ])(
    'are not known where the name of the database %s, which is an error; what it stood for before is kept and the fault is told',
    async (_what, fault) => {
      await expect(bookOf({ lookUp: fault }).book.now()).rejects.toMatchObject({ code: 'own_addresses_unknown' });
      let isAway = false;
      const { book, logged } = bookOf({
        interfaces: () => [],
        lookUp: async () => (isAway ? await fault() : [{ address: '203.0.113.9', family: 4 }]),
      });
      await book.now();
      isAway = true;
      expect(await book.now()).toEqual(['203.0.113.9']);
      expect(logged).toMatchObject([{ code: 'own_addresses_unknown', host: 'db.corp.example' }]);
    },
  );

  it('of a database behind a socket are those of the server', async () => {
    const { book } = bookOf({ databaseHost: null, lookUp: async () => Promise.reject(new Error('never asked')) });
    expect(await book.now()).toEqual(['127.0.0.1', 'fe80::1']);
  });
});
