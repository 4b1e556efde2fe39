import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assertReachable, chooseDatabaseUser, findAccount } from '../../src/postgres/database-user.ts';
import { isRunning, readProcessStatus, servesDirectory } from '../../src/postgres/inspect-process.ts';
import { installBinaries } from '../../src/postgres/install-binaries.ts';
import { serverArguments } from '../../src/postgres/launch-server.ts';
import { LOG_MAX_BYTES } from '../../src/postgres/limits.ts';
import { glibcVersion, locateBinaries } from '../../src/postgres/locate-binaries.ts';
import { openServerLog } from '../../src/postgres/server-log.ts';
import { parsePostmasterPid } from '../../src/postgres/settle-orphan.ts';
import { assertSocketFits } from '../../src/postgres/socket-folder.ts';
import { connectionUrl } from '../../src/postgres/start-postgres.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'fc-pgd-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const PASSWD = 'root:x:0:0::/root:/bin/sh\nbroken\nnobody:x:65534:65533:::\npostgres:x:101:104:,,,:/v:/bin/sh\n';

describe('the account of the server', () => {
  it.each([
    ['is the caller when that is not root', 1000, PASSWD, undefined],
    ['is postgres for root', 0, PASSWD, { name: 'postgres', uid: 101, gid: 104 }],
    ['is nobody for root where there is no postgres', 0, PASSWD.replace('postgres', 'other'), { name: 'nobody', uid: 65534, gid: 65533 }],
    ['is never another name of root', 0, 'postgres:x:0:0:::\nnobody:x:65534:65534:::', { name: 'nobody', uid: 65534, gid: 65534 }],
  ])('%s', (_name, uid, passwd, user) => {
    expect(chooseDatabaseUser(uid, undefined, () => passwd)).toEqual(user);
  });

  it('is missing where the passwd file has neither', () => {
    expect(() => chooseDatabaseUser(0, undefined, () => 'root:x:0:0::/root:/bin/sh\n')).toThrow(
      expect.objectContaining({ code: 'no_database_user', action: expect.stringContaining('FIRECREW_DATABASE_URL') }),
    );
  });

  it.each(['postgres:x::104:::', 'postgres:x:-1:104:::', 'postgres:x:1e3:104:::', 'postgres'])('is not read from the line %j', (line) => {
    expect(findAccount(line, 'postgres')).toBe(undefined);
  });

  it('must be able to walk to the folder; the parent that bars it is named', () => {
    const user = { name: 'other', uid: 54321, gid: 54321 };
    mkdirSync(join(home, 'a/b'), { recursive: true });
    chmodSync(home, 0o711);
    chmodSync(join(home, 'a'), 0o710);
    expect(() => assertReachable(join(home, 'a/b'), user)).toThrow(
      expect.objectContaining({ code: 'database_folder_unreachable', action: expect.stringContaining(`chmod o+x ${join(home, 'a')},`) }),
    );
    chmodSync(join(home, 'a'), 0o711);
    chmodSync(join(home, 'a/b'), 0o711);
    expect(() => assertReachable(join(home, 'a/b'), user)).not.toThrow();
  });
});

describe('the socket', () => {
  // 39 bytes come after the run folder: "/pg-", 8 digits, "-", 6 random characters, "/.s.PGSQL.5432" and its slash.
  it('fits into 107 bytes and not into one more', () => {
    const longest = 107 - '/pg-00000000-XXXXXX/.s.PGSQL.5432'.length;
    expect(() => assertSocketFits(`/${'r'.repeat(longest - 1)}`)).not.toThrow();
    expect(() => assertSocketFits(`/${'r'.repeat(longest)}`)).toThrow(expect.objectContaining({ code: 'socket_path_too_long' }));
    expect(() => assertSocketFits(`/${'ü'.repeat(longest / 2 + 1)}`)).toThrow(expect.objectContaining({ code: 'socket_path_too_long' }));
  });
});

describe('the command line of the server', () => {
  it('opens no address whatever the settings say, and protects the folder of the socket', () => {
    const args = serverArguments({ dataDir: '/d', socketDir: '/a,b"c', settings: { listen_addresses: '*', port: '1', jit: 'on' } }, true);
    expect(args).toContain('listen_addresses=');
    expect(args).toContain('port=5432');
    expect(args).toContain('unix_socket_directories="/a,b""c"');
    expect(args).toContain('jit=on');
    expect(args).not.toContain('listen_addresses=*');
    expect(args).toContain('io_method=sync');
  });

  it("leaves out what an operator's older server does not know", () => {
    expect(serverArguments({ dataDir: '/d', socketDir: '/s', settings: {} }, false).join()).not.toContain('io_method');
  });
});

it.each([
  ['12\n/data\n', 12],
  ['-12\n', 12],
  [' 12 ', 12],
  ['', undefined],
  ['0\n', undefined],
  ['abc\n', undefined],
  ['12345678901\n', undefined],
  ['1;2\n', undefined],
])('the pid file %j names %s', (text, pid) => {
  expect(parsePostmasterPid(text)).toBe(pid);
});

describe('a process', () => {
  it('is looked up by pid, name and working directory', async () => {
    const names: readonly (readonly [string, string, boolean])[] = [
      ['postgres', home, true],
      ['a) Z (postgres', home, true],
      ['postgres', '/', false],
      ['sh', home, false],
    ];
    for (const [name, cwd, serves] of names) {
      const program = join(home, name);
      copyFileSync('/bin/sleep', program);
      const child = spawn(program, ['600'], { cwd, stdio: 'ignore' });
      await once(child, 'spawn');
      const pid = child.pid ?? 0;
      expect([name, isRunning(pid), servesDirectory(pid, realpathSync(home))]).toEqual([name, true, serves]);
      child.kill('SIGKILL');
      await once(child, 'exit');
      expect(servesDirectory(pid, realpathSync(home))).toBe(false);
      rmSync(program);
    }
    expect(readProcessStatus(2 ** 22 - 1)).toBe(undefined);
  });
});

describe('the programs', () => {
  it('get a link for every library and every other name of it', async () => {
    const binaries = locateBinaries();
    const { libraries } = await installBinaries(binaries, join(home, 'support'), false);
    const links = readdirSync(libraries ?? '');
    for (const name of ['libicui18n.so.60', 'libicuuc.so.60', 'libpq.so.5', 'libssl.so.1.1']) expect(links).toContain(name);
    expect(readlinkSync(join(libraries ?? '', 'libpq.so.5'))).toBe(join(binaries.native ?? '', 'lib', 'libpq.so.5.18'));
    for (const name of links) expect(statSync(join(libraries ?? '', name)).isFile()).toBe(true);
  });

  it('get their links again when some are gone, and leave nothing half-made', async () => {
    const support = join(home, 'support');
    const first = await installBinaries(locateBinaries(), support, false);
    unlinkSync(join(first.libraries ?? '', 'libpq.so.5'));
    mkdirSync(join(support, '.new-leftover'));
    const second = await installBinaries(locateBinaries(), support, false);
    expect(second).toEqual(first);
    expect(readdirSync(first.libraries ?? '')).toContain('libpq.so.5');
  });

  it('of two starts at the same time are one', async () => {
    const both = await Promise.all([1, 2].map(() => installBinaries(locateBinaries(), join(home, 'support'), true)));
    expect(both[0]).toEqual(both[1]);
    expect(both[0]?.bin).toBe(join(home, 'support', `postgres-${locateBinaries().version}`, 'bin'));
    expect(readdirSync(join(home, 'support'))).toHaveLength(2);
    expect(statSync(join(both[0]?.bin ?? '', 'postgres')).mode & 0o555).toBe(0o555);
  });

  it('of the operator are taken as they are', async () => {
    for (const name of ['initdb', 'postgres']) writeFileSync(join(home, name), '', { mode: 0o755 });
    const binaries = locateBinaries(home);
    expect(await installBinaries(binaries, join(home, 'support'), true)).toEqual({ bin: home, libraries: undefined });
    chmodSync(join(home, 'postgres'), 0o644);
    expect(() => locateBinaries(home)).toThrow(expect.objectContaining({ code: 'postgres_binaries_missing' }));
  });

  it.each([
    [{ header: { glibcVersionRuntime: '2.36' } }, '2.36'],
    [{ header: {} }, undefined],
    [{}, undefined],
    [null, undefined],
  ])('find the glibc version of the report %j', (report, version) => {
    expect(glibcVersion(report)).toBe(version);
  });
});

describe('the log of the server', () => {
  it('is moved aside when it is larger than its limit, and quoted only from this start on', () => {
    const path = join(home, 'data.log');
    writeFileSync(path, Buffer.alloc(LOG_MAX_BYTES, 'x'));
    const kept = openServerLog(path);
    expect(kept.tail()).toBe('');
    kept.close();
    writeFileSync(path, Buffer.alloc(LOG_MAX_BYTES + 1, 'x'));
    const fresh = openServerLog(path);
    writeFileSync(path, 'FATAL: no', { flag: 'a' });
    expect(fresh.tail()).toBe('FATAL: no');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    fresh.close();
    fresh.close();
    expect(statSync(`${path}.1`).size).toBe(LOG_MAX_BYTES + 1);
  });
});

it('a URL holds every part of a connection, whatever its characters', () => {
  const url = connectionUrl({ host: '/run/a b', port: 5432, user: 'u', password: 'p/@:?', database: 'd' });
  expect(url).toBe('postgresql://u:p%2F%40%3A%3F@/d?host=%2Frun%2Fa%20b&port=5432');
});
