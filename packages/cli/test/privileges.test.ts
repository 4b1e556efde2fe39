// A home of root's for real: who runs as whom, and what each account can reach.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runEndedSchema } from '../src/run/run-event.ts';
import { ATTEMPT_OWNERS, SERVER_OWNER } from '../src/supervisor/server-account.ts';
import { eventually, type Started, TestHome } from './command.ts';

// Made by the first hook: where all tests are skipped, no hook would remove it.
let home: TestHome;
let repo = '';
const at = (path: string): string => join(home.root, path);
const git = (...args: string[]): string => execFileSync('git', args, { cwd: repo, encoding: 'utf8', env: home.env }).trim();

/** What a command can do as another account, without root's groups. */
function as(uid: number, command: string): boolean {
  return spawnSync('/bin/sh', ['-c', command], { uid, gid: uid, cwd: '/', stdio: 'ignore' }).status === 0;
}

const uidsOf = (pid: number, line: string): number[] =>
  (new RegExp(`^${line}:[\\t ]*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '')
    .split(/\s+/)
    .filter(Boolean)
    .map(Number);

/** Files below `folder` that belong to `uid`; no link is followed. */
function filesOf(folder: string, uid: number): string[] {
  const { stdout } = spawnSync('find', [folder, '-type', 'f', '-uid', String(uid)], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean);
}

/** The processes of an attempt, by the mark that each of them carries. */
function attemptsNow(): Map<string, number> {
  const found = new Map<string, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const marker = /(?:^|\0)FIRECREW_ATTEMPT=([^\0]+)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1];
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (marker !== undefined && command.includes(home.folder) && command.includes('go-on'))
        found.set(marker, statSync(`/proc/${pid}`).uid);
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

const start = (...args: string[]): Started => home.start(['run', '--repo', '.', '--json', ...args], { cwd: repo });
const endOf = (stdout: string) => runEndedSchema.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''));

describe.skipIf(process.getuid?.() !== 0)('services that root starts (needs root)', () => {
  beforeAll(async () => {
    home = new TestHome();
    // The accounts are all there is between attempts here.
    home.env.FIRECREW_BUBBLEWRAP = 'off';
    repo = join(home.folder, 'repo');
    mkdirSync(repo);
    git('init', '-q', '-b', 'main');
    git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'first');
    // What a version that ran the server as root left, and a link out of it.
    mkdirSync(at('server/old'), { recursive: true });
    mkdirSync(at('run'));
    writeFileSync(at('server/old/file'), 'old', { mode: 0o600 });
    writeFileSync(join(home.folder, 'secret'), 'secret', { mode: 0o600 });
    symlinkSync(join(home.folder, 'secret'), at('server/old/link'));
    symlinkSync(home.folder, at('server/old/folder-link'));
    writeFileSync(at('run/server.json'), '{}');
    const { code, stderr } = await home.run('up');
    expect([code, stderr]).toEqual([0, 'starting firecrew ...\n']);
  });
  afterAll(() => home.remove());

  it('give the server an account of its own, and no group of root', async () => {
    const pid = (await home.status()).server?.pid ?? 0;
    expect(uidsOf(pid, 'Uid')).toEqual(Array(4).fill(SERVER_OWNER.uid));
    expect(uidsOf(pid, 'Gid')).toEqual(Array(4).fill(SERVER_OWNER.gid));
    expect(uidsOf(pid, 'Groups')).toEqual([]);
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, 2)).toEqual([
      expect.stringMatching(`^${at('versions')}/[0-9a-f]{16}/node$`),
      expect.stringMatching(`^${at('versions')}/[0-9a-f]{16}/server.mjs$`),
    ]);
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')).toContain(`HOME=${at('server')}`);
  });

  it('keep the server out of every folder but its own', () => {
    const { uid } = SERVER_OWNER;
    for (const path of ['run/token', 'run/node-key.pem', 'run/database.json', 'node/shims.json', 'logs/server.log']) {
      expect(existsSync(at(path)), path).toBe(true);
      expect(as(uid, `cat ${at(path)}`), path).toBe(false);
    }
    for (const path of ['run', 'node', 'node/turns', 'node/tokens', 'logs', 'client', 'versions', 'database', '']) {
      expect(existsSync(at(path)), path).toBe(true);
      expect(as(uid, `touch ${at(path)}/made`), path).toBe(false);
    }
    for (const file of filesOf(at('versions'), 0)) expect(as(uid, `echo >> ${file}`), file).toBe(false);
    expect(as(uid, `cat ${at('server/config.json')} && touch ${at('server/made')} && rm ${at('server/made')}`)).toBe(true);
    expect(as(ATTEMPT_OWNERS.firstUid, `cat ${at('server/config.json')}`)).toBe(false);
  });

  it('take over what an earlier version left, and follow no link', () => {
    const owner = (path: string): number => lstatSync(path).uid;
    expect(['server', 'server/old', 'server/old/file', 'server/old/link', 'server/old/folder-link'].map((path) => owner(at(path)))).toEqual(
      Array(5).fill(SERVER_OWNER.uid),
    );
    expect([join(home.folder, 'secret'), home.folder].map(owner)).toEqual([0, 0]);
  });

  it('say their address where it always was', async () => {
    expect(JSON.parse(readFileSync(at('run/server.json'), 'utf8')).url).toBe((await home.status()).url);
    expect(lstatSync(at('run/server.json')).isSymbolicLink()).toBe(true);
  });

  it('believe no pid that the server names unless it runs as the server', async () => {
    const before = await home.status();
    const file = at('server/server.json');
    const text = readFileSync(file, 'utf8');
    const own = readFileSync('/proc/self/stat', 'utf8');
    try {
      const ticks = own.slice(own.lastIndexOf(')') + 2).split(' ')[19];
      writeFileSync(file, JSON.stringify({ ...JSON.parse(text), pid: process.pid, startTicks: ticks }));
      expect((await home.status()).server?.pid).toBe(before.server?.pid);
    } finally {
      writeFileSync(file, text);
    }
  });

  it('run each attempt as a user that reaches neither another one nor the services', async () => {
    const wait = `while [ ! -e ${home.folder}/go-on ]; do sleep 0.2; done; id -u > uid.txt`;
    const runs = ['one', 'two'].map((task) => start('--task', task, '--check', 'true', '--agent-cmd', wait));
    const attempts = await eventually(() => {
      const found = attemptsNow();
      return found.size === 2 ? found : undefined;
    }, 90_000).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${runs.map((one) => one.output()).join('\n')}`);
    });
    const uids = [...attempts.values()];
    expect(new Set(uids).size).toBe(2);
    for (const uid of uids) {
      expect(uid).toBeGreaterThanOrEqual(ATTEMPT_OWNERS.firstUid);
      expect(uid).toBeLessThan(ATTEMPT_OWNERS.firstUid + ATTEMPT_OWNERS.count);
      const own = filesOf(at('node/turns'), uid);
      expect(own.length).toBeGreaterThan(0);
      for (const other of uids)
        for (const file of filesOf(at('node/turns'), other)) expect(as(uid, `cat '${file}'`), file).toBe(uid === other);
      const kept = [...filesOf(at('node'), 0), ...filesOf(at('server'), SERVER_OWNER.uid), ...filesOf(at('run'), 0)];
      expect(kept.length).toBeGreaterThan(10);
      // Its own /etc is made by root and for it to read.
      const ownEtc = `${own[0]
        ?.split('/')
        .slice(0, at('node/turns').split('/').length + 2)
        .join('/')}/etc/`;
      for (const file of kept.filter((path) => !path.startsWith(at('node/versions'))))
        expect(as(uid, `cat '${file}'`), file).toBe(file.startsWith(ownEtc));
      for (const folder of ['node', 'node/turns', 'server', 'run', 'database']) expect(as(uid, `ls ${at(folder)}`), folder).toBe(false);
    }
    writeFileSync(join(home.folder, 'go-on'), '');
    const ends = await Promise.all(runs.map(async (one) => endOf((await one.ended).stdout)));
    expect(ends.map(({ verified, exitCode }) => [verified, exitCode])).toEqual([
      [true, 0],
      [true, 0],
    ]);
    expect(ends.map(({ branch }) => Number(git('show', `${branch}:uid.txt`))).toSorted()).toEqual(uids.toSorted());
  });

  it('start a killed server again as its account, over the files that it left', async () => {
    const before = await home.status();
    process.kill(before.server?.pid ?? 0, 'SIGKILL');
    const after = await eventually(async () => {
      const status = await home.status();
      return status.ready && status.server !== null && status.server.pid !== before.server?.pid ? status : undefined;
    });
    expect(uidsOf(after.server?.pid ?? 0, 'Uid')).toEqual(Array(4).fill(SERVER_OWNER.uid));
  });

  it('leave nothing when they are stopped', async () => {
    const { code, stdout } = await home.run('down', '--json');
    expect([code, JSON.parse(stdout)]).toEqual([0, { stopped: ['node agent', 'server', 'database', 'supervisor'], left: [], refused: [] }]);
    const left = readdirSync('/proc').filter(
      (name) => /^\d+$/.test(name) && statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid === SERVER_OWNER.uid,
    );
    expect(left.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(home.root))).toEqual([]);
    expect(readdirSync(at('node/turns'))).toEqual([]);
  });

  it('refuse a home that the server cannot walk to', async () => {
    chmodSync(home.folder, 0o700);
    try {
      const { code, stderr } = await home.start(['up'], { env: { FIRECREW_DATABASE_URL: 'postgresql://u:p@127.0.0.1:1/none' } }).ended;
      expect([code, stderr]).toEqual([1, expect.stringContaining('server_folder_unreachable')]);
    } finally {
      chmodSync(home.folder, 0o711);
    }
  });
});
