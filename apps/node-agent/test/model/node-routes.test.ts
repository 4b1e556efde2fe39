import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelRoutesSchema } from '@firecrew/backend';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RouteOrder } from '../../src/broker/broker-messages.ts';
import { readCredential } from '../../src/broker/read-credential.ts';
import { modelLaunchOf, modelLaunchSchema } from '../../src/model/model-launch.ts';
import { NodeRoutes } from '../../src/model/node-routes.ts';

const SECRET = 'sk-0123456789';
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-routes-'));
});
afterEach(async () => await rm(folder, { recursive: true }));

const routesOf = (extra: Record<string, unknown>) =>
  modelRoutesSchema.parse({
    command: { format: 'openai_chat', upstream: 'https://api.model.test', credential: { file: join(folder, 'key') }, ...extra },
  });

describe('a credential', () => {
  it('is one line of a file, or a variable', async () => {
    await writeFile(join(folder, 'key'), `${SECRET}\n`);
    expect(await readCredential({ file: join(folder, 'key') }, {})).toBe(SECRET);
    expect(await readCredential({ variable: 'KEY' }, { KEY: SECRET })).toBe(SECRET);
  });

  it.each(['', 'short', `${SECRET} and more`, `${SECRET}\n${SECRET}`, 'x'.repeat(9_000)])(
    '%j of a file is none, and the error holds nothing of it',
    async (text) => {
      await writeFile(join(folder, 'key'), text);
      const error: unknown = await readCredential({ file: join(folder, 'key') }, {}).catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code: 'model_credential_unreadable' });
      expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain(SECRET);
    },
  );

  it.each([{ file: '/nowhere/at/all' }, { variable: 'NOT_SET' }])('that is missing in %j is an error', async (source) => {
    await expect(readCredential(source, {})).rejects.toMatchObject({ code: 'model_credential_unreadable' });
  });
});

/** A desk that keeps what it is told. */
function desk(told: Record<string, RouteOrder> = {}) {
  return {
    socketPath: '/run/b.sock',
    setRoute: (name: string, route: RouteOrder) => {
      told[name] = route;
    },
  };
}

describe('the routes of a node', () => {
  it('tell the broker where a route leads and where its credential lies, without reading it', async () => {
    await writeFile(join(folder, 'key'), SECRET);
    await writeFile(join(folder, 'ca'), 'PEM');
    const told: Record<string, RouteOrder> = {};
    const routes = new NodeRoutes(routesOf({ caFile: join(folder, 'ca') }), desk(told), pino({ level: 'silent' }));
    await routes.tellAll();
    const order = {
      format: 'openai_chat',
      features: [],
      upstream: 'https://api.model.test',
      ca: 'PEM',
      header: null,
      credential: { file: join(folder, 'key') },
      viaProxy: true,
    };
    expect(told).toEqual({ command: order });
    expect(JSON.stringify(told)).not.toContain(SECRET);
    // Certificates are read again for each turn.
    await writeFile(join(folder, 'ca'), 'NEWER');
    await routes.launchOf('command');
    expect(told).toEqual({ command: { ...order, ca: 'NEWER' } });
  });

  it('send what a variable holds, and say so where it holds nothing', async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const told: Record<string, RouteOrder> = {};
    const routes = new NodeRoutes(routesOf({ credential: { variable: 'FC_TEST_KEY' } }), desk(told), log);
    await routes.tellAll();
    expect(told.command?.credential).toEqual({ missing: true });
    expect(lines).toHaveLength(1);
    process.env.FC_TEST_KEY = SECRET;
    try {
      await routes.tellAll();
    } finally {
      delete process.env.FC_TEST_KEY;
    }
    expect(told.command?.credential).toEqual({ value: SECRET, isRenewable: false });
    expect(lines.join('')).not.toContain(SECRET);
  });

  it.each(['', 'comman', 'commands', 'toString', '__proto__'])('have none for %j', async (backend) => {
    const told: Record<string, RouteOrder> = {};
    const routes = new NodeRoutes(routesOf({}), desk(told), pino({ level: 'silent' }));
    expect(await routes.launchOf(backend)).toBeNull();
    expect(told).toEqual({});
  });
});

describe('the launch part of a route', () => {
  it('holds everything but the credential', async () => {
    await writeFile(join(folder, 'key'), SECRET);
    await writeFile(join(folder, 'prices'), JSON.stringify({ models: { m: { input: 1, output: 2 } } }));
    const extra = { priceFile: join(folder, 'prices'), budget: { tokens: 5, money: 1.5 }, outputTokens: 7 };
    const route = routesOf(extra).command;
    if (route === undefined) throw new Error('no route');
    const launch = await modelLaunchOf(route, '/run/b.sock');
    expect(modelLaunchSchema.parse(JSON.parse(JSON.stringify(launch)))).toEqual({
      format: 'openai_chat',
      broker: '/run/b.sock',
      header: null,
      features: [],
      models: null,
      outputCap: 7,
      budget: { tokens: 5, micros: 1_500_000 },
      prices: { m: { input: 1, output: 2 } },
      hasCredential: true,
    });
    expect(JSON.stringify(launch)).not.toContain(SECRET);
  });

  it.each([
    ['caFile', undefined],
    ['priceFile', undefined],
    ['priceFile', '{'],
    ['priceFile', '{"models":{"m":{"input":"dear"}}}'],
  ])('is an error where %s is %j', async (key, text) => {
    if (text !== undefined) await writeFile(join(folder, 'x'), text);
    const route = routesOf({ [key]: join(folder, 'x') }).command;
    if (route === undefined) throw new Error('no route');
    await expect(new NodeRoutes({ command: route }, desk(), pino({ level: 'silent' })).launchOf('command')).rejects.toMatchObject({
      code: 'model_route_unreadable',
    });
  });

  it('share the one login of a command, and send each new credential', async () => {
    const [program, runs] = [join(folder, 'login'), join(folder, 'runs')];
    await writeFile(program, `#!/bin/sh\necho x >> ${runs}\ncat ${join(folder, 'key')}\n`, { mode: 0o755 });
    await writeFile(join(folder, 'key'), `{"credential":"${SECRET}","expiresAt":"2001-01-01T00:00:00Z"}`);
    const told: Record<string, RouteOrder> = {};
    const routes = new NodeRoutes(routesOf({ credential: { command: [program] } }), desk(told), pino({ level: 'silent' }));
    try {
      await Promise.all([routes.tellAll(), routes.launchOf('command'), routes.launchOf('command')]);
      expect(told).toMatchObject({ command: { credential: { value: SECRET } } });
      expect(await readFile(runs, 'utf8')).toBe('x\n');
      // It has ended already, so that the next one is asked for as soon as may be.
      await writeFile(join(folder, 'key'), 'sk-of-another-day');
      const isNew = () => expect(told).toMatchObject({ command: { credential: { value: 'sk-of-another-day' } } });
      await vi.waitFor(isNew, { timeout: 20_000, interval: 50 });
    } finally {
      routes.stop();
    }
  });
});
