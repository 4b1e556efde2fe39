import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeParent } from '../src/home/check-parents.ts';
import { chooseHome } from '../src/home/home-paths.ts';
import { HOME_PATH_MAX_BYTES, openExistingHome, openHome } from '../src/home/open-home.ts';
import { LOG_KEEP, LOG_ROTATE_BYTES, rotateLog } from '../src/supervisor/processes.ts';
import { publicKeyOf, readJoined } from '../src/supervisor/service-config.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-home-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const mode = (path: string): number => statSync(path).mode & 0o777;

describe('the home', () => {
  it.each([
    [undefined, {}, 0, '/var/lib/firecrew'],
    [undefined, { XDG_STATE_HOME: '/x' }, 0, '/var/lib/firecrew'],
    [undefined, { FIRECREW_HOME: '/h' }, 0, '/h'],
    ['/flag', { FIRECREW_HOME: '/h' }, 7, '/flag'],
    [undefined, { XDG_STATE_HOME: '/x' }, 7, '/x/firecrew'],
  ])('is chosen: flag %s, %j, uid %d', (flag, env, uid, root) => {
    expect(chooseHome(flag, env, uid)).toBe(root);
  });

  it('ignores a relative state folder', () => {
    expect(chooseHome(undefined, { XDG_STATE_HOME: 'x' }, 7)).toMatch(/\/\.local\/state\/firecrew$/);
  });

  it('has private folders, and is the same when it is opened again', () => {
    const home = openHome(join(folder, 'h'));
    const walkable = process.getuid?.() === 0 ? 0o711 : 0o700;
    expect([mode(home.paths.root), mode(home.paths.run), mode(home.paths.server), mode(home.paths.logs), mode(home.paths.node)]).toEqual([
      walkable,
      0o700,
      0o700,
      0o700,
      0o711,
    ]);
    expect([mode(home.paths.token), mode(home.paths.identity)]).toEqual([0o600, 0o600]);
    expect(openHome(join(folder, 'h'))).toEqual(home);
    expect(home.token).toMatch(/^fct_[A-Za-z0-9_-]{43}$/);
  });

  it('takes its rights back when they were widened', () => {
    const home = openHome(join(folder, 'h'));
    chmodSync(home.paths.run, 0o777);
    openHome(join(folder, 'h'));
    expect(mode(home.paths.run)).toBe(0o700);
  });

  it('is not made in a folder that is somebody’s', () => {
    writeFileSync(join(folder, 'thesis.txt'), 'x');
    expect(() => openHome(folder)).toThrow(expect.objectContaining({ code: 'home_occupied' }));
  });

  it('may hold its configuration before it is made', () => {
    writeFileSync(join(folder, 'config.json'), '{}');
    expect(openHome(folder).homeId).toMatch(/^home_/);
  });

  it.each([
    ['of a newer layout', '{"homeId":"home_123456789","layout":2,"nodeId":"x","new":1}', 'home_too_new'],
    ['that was damaged', '{"homeId":', 'home_damaged'],
    ['of another shape', '{"layout":1}', 'home_damaged'],
  ])('%s is refused and left as it is', (_what, text, code) => {
    writeFileSync(join(folder, 'home.json'), text);
    expect(() => openHome(folder)).toThrow(expect.objectContaining({ code }));
    expect(readFileSync(join(folder, 'home.json'), 'utf8')).toBe(text);
  });

  it('is refused where no folder can be made', () => {
    writeFileSync(join(folder, 'file'), '');
    for (const path of [join(folder, 'file'), join(folder, 'file', 'h')])
      expect(() => openHome(path)).toThrow(expect.objectContaining({ code: 'home_unusable', action: expect.any(String) }));
  });

  it.each(['', 'fct_short', 'x'.repeat(47)])('is refused with a token that was damaged: %j', (token) => {
    const home = openHome(join(folder, 'h'));
    writeFileSync(home.paths.token, token);
    expect(() => openHome(join(folder, 'h'))).toThrow(expect.objectContaining({ code: 'home_damaged', id: home.paths.token }));
  });

  it('of a node is never taken for one with a server of its own because what it joined cannot be read', () => {
    const home = openHome(join(folder, 'h'));
    expect(readJoined(home)).toBeUndefined();
    writeFileSync(home.paths.joinFile, '{"serverUrl":');
    expect(() => readJoined(home)).toThrow(expect.objectContaining({ code: 'home_damaged', id: home.paths.joinFile }));
  });

  it('says which key of a node is none', () => {
    const home = openHome(join(folder, 'h'));
    writeFileSync(home.paths.nodeKey, 'x');
    expect(() => publicKeyOf(home)).toThrow(expect.objectContaining({ code: 'home_damaged', id: home.paths.nodeKey }));
  });

  it('is refused below a folder that everyone may write', () => {
    mkdirSync(join(folder, 'open'));
    chmodSync(join(folder, 'open'), 0o777);
    expect(() => openHome(join(folder, 'open', 'h'))).toThrow(expect.objectContaining({ code: 'home_parent_unsafe' }));
  });

  it('is refused when sockets below it would have paths that are too long', () => {
    const room = HOME_PATH_MAX_BYTES - Buffer.byteLength(folder) - 1;
    expect(() => openHome(join(folder, 'x'.repeat(room + 1)))).toThrow(expect.objectContaining({ code: 'home_path_too_long' }));
    expect(openHome(join(folder, 'x'.repeat(room))).homeId).toMatch(/^home_/);
  });

  it('that is not there is not made by a look', () => {
    expect(openExistingHome(join(folder, 'none'))).toBeUndefined();
    expect(() => statSync(join(folder, 'none'))).toThrow();
  });
});

describe('a folder above the home', () => {
  const self = { uid: 7, gid: 7 };
  it.each([
    ['root’s', { uid: 0, gid: 0, mode: 0o755 }, true],
    ['its own', { uid: 7, gid: 7, mode: 0o700 }, true],
    ['sticky', { uid: 0, gid: 0, mode: 0o1777 }, true],
    ['writable by its own group', { uid: 7, gid: 7, mode: 0o775 }, true],
    ['writable by all', { uid: 7, gid: 7, mode: 0o777 }, false],
    ['writable by another group', { uid: 0, gid: 50, mode: 0o775 }, false],
    ['somebody else’s', { uid: 8, gid: 8, mode: 0o755 }, false],
    ['sticky and somebody else’s', { uid: 8, gid: 8, mode: 0o1777 }, false],
  ])('that is %s', (_what, stats, trusted) => {
    expect(judgeParent(stats, self) === undefined).toBe(trusted);
  });
});

it('moves a large log aside at a start, and keeps a few', () => {
  const log = join(folder, 'a.log');
  for (let start = 0; start <= LOG_KEEP + 1; start += 1) {
    writeFileSync(log, Buffer.alloc(LOG_ROTATE_BYTES, 48 + start));
    rotateLog(log);
  }
  writeFileSync(log, Buffer.alloc(LOG_ROTATE_BYTES - 1));
  rotateLog(log);
  const first = (name: string): string => readFileSync(join(folder, name), 'utf8').slice(0, 1);
  expect([first('a.log.1'), first('a.log.2'), first('a.log.3')]).toEqual(['4', '3', '2']);
  expect(() => statSync(`${log}.${LOG_KEEP + 1}`)).toThrow();
  expect(statSync(log).size).toBe(LOG_ROTATE_BYTES - 1);
});
