import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelRoutesSchema } from '@firecrew/backend';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { modelLaunchOf, modelLaunchSchema } from '../../src/model/model-launch.ts';
import { NodeRoutes } from '../../src/model/node-routes.ts';
import { readCredential } from '../../src/model/read-credential.ts';

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

describe('the routes of a node', () => {
  it('give the credential as it is now, and tell of each fault once', async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const routes = new NodeRoutes(routesOf({}), log);
    expect(await routes.credentialOf('command')).toBeUndefined();
    expect(await routes.credentialOf('command')).toBeUndefined();
    expect(lines).toHaveLength(1);
    await writeFile(join(folder, 'key'), SECRET);
    expect(await routes.credentialOf('command')).toBe(SECRET);
    await writeFile(join(folder, 'key'), 'sk-newer-0123');
    expect(await routes.credentialOf('command')).toBe('sk-newer-0123');
    await writeFile(join(folder, 'key'), `${SECRET} damaged`);
    expect(await routes.credentialOf('command')).toBeUndefined();
    expect(lines).toHaveLength(2);
    expect(lines.join('')).not.toContain(SECRET);
  });

  it.each(['', 'comman', 'commands', 'toString', '__proto__'])('have none for %j', async (backend) => {
    await writeFile(join(folder, 'key'), SECRET);
    const routes = new NodeRoutes(routesOf({}), pino({ level: 'silent' }));
    expect(await routes.credentialOf(backend)).toBeUndefined();
    expect(await routes.launchOf(backend)).toBeNull();
  });
});

describe('the launch part of a route', () => {
  it('holds everything but the credential', async () => {
    await writeFile(join(folder, 'key'), SECRET);
    await writeFile(join(folder, 'prices'), JSON.stringify({ models: { m: { input: 1, output: 2 } } }));
    await writeFile(join(folder, 'ca'), 'PEM');
    const extra = { caFile: join(folder, 'ca'), priceFile: join(folder, 'prices'), budget: { tokens: 5, money: 1.5 }, outputTokens: 7 };
    const route = routesOf(extra).command;
    if (route === undefined) throw new Error('no route');
    const launch = await modelLaunchOf(route);
    expect(modelLaunchSchema.parse(JSON.parse(JSON.stringify(launch)))).toEqual({
      format: 'openai_chat',
      upstream: 'https://api.model.test',
      ca: 'PEM',
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
    await expect(modelLaunchOf(route)).rejects.toMatchObject({ code: 'model_route_unreadable' });
  });
});
