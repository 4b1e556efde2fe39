import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RouteOrder } from '../../src/broker/broker-messages.ts';
import { CredentialWatch } from '../../src/broker/credential-watch.ts';

const SECRET = 'sk-0123456789';
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-watch-'));
});
afterEach(async () => await rm(folder, { recursive: true }));

const route = (credential: RouteOrder['credential']): RouteOrder => ({
  format: 'openai_chat',
  features: [],
  upstream: 'https://api.model.test',
  ca: null,
  header: null,
  credential,
  viaProxy: true,
});

function makeWatch() {
  const lines: string[] = [];
  const told: (readonly [string, string | null])[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const watch = new CredentialWatch({ setCredential: (name, credential) => void told.push([name, credential]) }, log);
  const look = async () => {
    watch.setInUse(new Set(['r']));
    await watch.settled();
  };
  return { watch, told, lines, look };
}

describe('the credentials of a broker', () => {
  it('are those of the file as it is now; each change is taken once, each fault told once', async () => {
    const { watch, told, lines, look } = makeWatch();
    watch.setRoutes({ r: route({ file: join(folder, 'key') }) });
    for (const _ of [1, 2]) await look();
    expect([told, lines.length]).toEqual([[], 1]);
    await writeFile(join(folder, 'key'), SECRET);
    for (const _ of [1, 2]) await look();
    expect(told).toEqual([['r', SECRET]]);
    await writeFile(join(folder, 'key'), 'sk-newer-0123');
    await look();
    expect(told.at(-1)).toEqual(['r', 'sk-newer-0123']);
    await writeFile(join(folder, 'key'), `${SECRET} damaged`);
    for (const _ of [1, 2]) await look();
    // The one that was there stays.
    expect([told.length, lines.length]).toEqual([2, 2]);
    expect(lines.join('')).toContain('model_credential_unreadable');
    expect(lines.join('')).not.toContain(SECRET);
  });

  it('are read once at the start, so that a fault shows, and after that only while a turn may use their route', async () => {
    const { watch, told, lines, look } = makeWatch();
    watch.setRoutes({ r: route({ file: join(folder, 'key') }) });
    await watch.settled();
    expect(lines).toHaveLength(1);
    await writeFile(join(folder, 'key'), SECRET);
    watch.setInUse(new Set(['other']));
    await watch.settled();
    expect(told).toEqual([]);
    await look();
    expect(told).toEqual([['r', SECRET]]);
  });

  it('come with the route where a variable holds them, and there are none where none are asked for or none is set', async () => {
    const { watch, told } = makeWatch();
    watch.setRoutes({ value: route({ value: SECRET, isRenewable: false }), none: route(null), missing: route({ missing: true }) });
    await watch.settled();
    expect(told).toEqual([
      ['value', SECRET],
      ['none', null],
    ]);
  });
});
