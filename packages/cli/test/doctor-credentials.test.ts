import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CredentialFile, judgeCredentialFile, listCredentialFiles, lookAt } from '../src/commands/doctor-credentials.ts';
import { settingsSchema } from '../src/settings/settings.ts';

const IS_ROOT = process.getuid?.() === 0;
const [BROKER, SERVER] = [199_998, 199_999];
const ROUTE = { format: 'anthropic_messages', upstream: 'https://api.model.test', credential: { file: '/k' } };
const PROXY = { url: 'http://proxy.corp.test:3128', credential: { file: '/login' } };

describe('the files with credentials of a node', () => {
  const list = (settings: unknown, isRoot: boolean, hasServer: boolean) =>
    listCredentialFiles(settingsSchema.parse(settings), isRoot, hasServer).map(({ file, readers }) => [
      file,
      ...readers.map(({ name, account }) => `${name} ${account?.uid ?? 'caller'}`),
    ]);
  const modelRoutes = { command: ROUTE };
  it.each([
    [{ modelRoutes }, true, true, [['/k', `credential broker ${BROKER}`]]],
    [{ modelRoutes }, false, true, [['/k', 'credential broker caller']]],
    [{ modelRoutes: { command: { ...ROUTE, credential: { variable: 'X' } } } }, true, true, []],
    [{ egressProxy: PROXY }, true, true, [['/login', `server ${SERVER}`]]],
    [{ egressProxy: PROXY }, true, false, [['/login', 'node agent caller']]],
    [{ egressProxy: { ...PROXY, credential: null } }, true, true, []],
    [
      { egressProxy: PROXY, modelRoutes },
      true,
      true,
      [
        ['/k', `credential broker ${BROKER}`],
        ['/login', `server ${SERVER}`, `credential broker ${BROKER}`],
      ],
    ],
    [
      { egressProxy: PROXY, modelRoutes: { command: { ...ROUTE, viaProxy: false } } },
      true,
      true,
      [
        ['/k', `credential broker ${BROKER}`],
        ['/login', `server ${SERVER}`],
      ],
    ],
  ])('of %j (as root %s, with a server %s) are %j', (settings, isRoot, hasServer, wanted) => {
    expect(list(settings, isRoot, hasServer)).toEqual(wanted);
  });
});

describe('one of them', () => {
  const broker = { name: 'credential broker', account: { uid: BROKER, gid: BROKER } };
  const server = { name: 'server', account: { uid: SERVER, gid: SERVER } };
  const of = (...readers: CredentialFile['readers'][number][]): CredentialFile => ({ what: 'of x', file: '/k', readers });
  it.each([
    [of(broker), null, 'problem', 'is not there', '$EDITOR /k'],
    [of(broker), { mode: 0o400, mayRead: [true] }, 'ok', 'can be read by those who need it', null],
    [
      of(broker),
      { mode: 0o400, mayRead: [false] },
      'problem',
      'by the credential broker (uid 199998);',
      'chown 199998 /k && chmod 0400 /k',
    ],
    [
      of(server, broker),
      { mode: 0o400, mayRead: [true, false] },
      'problem',
      'by the credential broker',
      'chown 199999:199998 /k && chmod 0440 /k',
    ],
    [
      of({ name: 'credential broker', account: undefined }),
      { mode: 0, mayRead: [false] },
      'problem',
      'by the credential broker;',
      'chmod u+r /k',
    ],
    [of(broker), { mode: 0o444, mayRead: [true] }, 'warning', 'can be read by every account', 'chmod o-r /k'],
    [of(broker), { mode: 0o400, mayRead: [undefined] }, 'warning', 'could not be found out', null],
  ] as const)('%j of which is known %j is a %s', (file, facts, state, text, fix) => {
    expect(judgeCredentialFile(file, facts)).toMatchObject({ check: 'credentials', state, fix, detail: expect.stringContaining(text) });
  });
});

describe('whether an account may read a file', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-doctor-'));
    await chmod(folder, 0o711);
    await writeFile(join(folder, 'key'), 'sk-0123456789', { mode: 0o400 });
  });
  afterAll(async () => await rm(folder, { recursive: true }));
  const look = (file: string, uid?: number) =>
    lookAt({ what: '', file, readers: [{ name: 'x', account: uid === undefined ? undefined : { uid, gid: uid } }] });

  it('is asked of the system, for the caller', () => {
    expect(look(join(folder, 'key'))).toMatchObject({ mayRead: [true] });
    expect(look(join(folder, 'none'))).toBeNull();
  });

  it.skipIf(!IS_ROOT)('is asked for another account, as it would be its own: the file, and the folders above it', async () => {
    const key = join(folder, 'key');
    expect(look(key, BROKER)).toMatchObject({ mayRead: [false] });
    await chown(key, SERVER, BROKER);
    expect(look(key, BROKER)).toMatchObject({ mayRead: [false] });
    await chmod(key, 0o440);
    expect([look(key, BROKER)?.mayRead, look(key, SERVER)?.mayRead]).toEqual([[true], [true]]);
    await chmod(folder, 0o700);
    expect(look(key, BROKER)).toMatchObject({ mayRead: [false] });
  });
});
