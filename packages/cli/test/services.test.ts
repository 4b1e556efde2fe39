// The services of a home for real: database, server and node agent, killed one by one.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually, TestHome } from './command.ts';

const home = new TestHome();
afterAll(() => home.remove());

const ready = async () =>
  await eventually(async () => {
    const status = await home.status();
    return status.ready && status.nodeAgent !== null && status.database !== null ? status : undefined;
  });
const kill = (view: { pid: number } | null): void => void process.kill(view?.pid ?? 0, 'SIGKILL');

describe('the services of a home', () => {
  it('are nothing before they are started, and a look starts nothing', async () => {
    const { code, stdout } = await home.run('status', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ ready: false, state: 'no_home', supervisor: null });
    expect(existsSync(home.root)).toBe(false);
    expect((await home.run('down')).code).toBe(0);
  });

  it('are started once by several commands at once', async () => {
    const calls = await Promise.all([home.run('up', '--json'), home.run('missions', '--json'), home.run('up', '--json')]);
    expect(calls.map(({ code, stderr }) => [code, stderr.replace('starting firecrew ...\n', '')])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ]);
    const status = await ready();
    const urls = calls.filter((_call, index) => index !== 1).map(({ stdout }) => JSON.parse(stdout).url);
    expect(new Set([...urls, status.url]).size).toBe(1);
    expect(status.restarts).toBe(0);
  });

  it('outlive their supervisor, and are adopted by the next one', async () => {
    const before = await ready();
    kill(before.supervisor);
    await eventually(async () => ((await home.status()).supervisor === null ? true : undefined));
    expect((await home.status()).ready).toBe(true);
    expect((await home.run('up')).code).toBe(0);
    const after = await ready();
    expect([after.database, after.server, after.nodeAgent, after.url]).toEqual([
      before.database,
      before.server,
      before.nodeAgent,
      before.url,
    ]);
    expect(after.supervisor?.pid).not.toBe(before.supervisor?.pid);
  });

  it.each(['database', 'server', 'nodeAgent'] as const)('come back when the %s is killed', async (role) => {
    const before = await ready();
    kill(before[role]);
    const after = await eventually(async () => {
      const status = await home.status();
      return status.ready && status[role] !== null && status[role]?.pid !== before[role]?.pid ? status : undefined;
    });
    expect(after.restarts).toBe(before.restarts + 1);
    const missions = await home.run('missions', '--json');
    expect([missions.code, JSON.parse(missions.stdout)]).toEqual([0, []]);
  });

  it('come back when all of them are killed at once', async () => {
    const before = await ready();
    for (const view of [before.supervisor, before.server, before.nodeAgent, before.database]) kill(view);
    const missions = await home.run('missions', '--json');
    expect([missions.code, missions.stdout.trim()]).toEqual([0, '[]']);
    expect((await ready()).supervisor?.pid).not.toBe(before.supervisor?.pid);
  });

  it('get the PATH of a later caller', async () => {
    const before = await ready();
    const path = `${home.env.PATH}:${home.folder}`;
    await home.start(['missions'], { env: { FIRECREW_CALLER_PATH: path } }).ended;
    await eventually(async () => {
      const { nodeAgent } = await home.status();
      return nodeAgent !== null && nodeAgent.pid !== before.nodeAgent?.pid ? true : undefined;
    });
    expect(JSON.parse(readFileSync(join(home.root, 'run/node-config.json'), 'utf8')).callerPath).toBe(path);
  });

  it('are a healthy machine to the doctor', async () => {
    const findings: { check: string; state: string; fix: string | null }[] = JSON.parse((await home.run('doctor', '--json')).stdout);
    expect(findings.find((one) => one.check === 'services')?.state).toBe('ok');
    for (const one of findings) expect(one.state === 'problem' && one.fix === null, one.check).toBe(false);
  });

  it('place nothing on a node that drains', async () => {
    const nodes = async (): Promise<{ id: string; name: string; draining: boolean; verdict: { unfit?: unknown } }[]> =>
      JSON.parse((await home.run('fleet', '--json')).stdout).nodes;
    const [node] = await nodes();
    expect((await home.run('node', 'drain', 'local')).stdout).toContain('node local drains');
    expect((await nodes())[0]).toMatchObject({ draining: true, verdict: { unfit: { reason: 'draining' } } });
    const { code, stdout } = await home.run('node', 'undrain', node?.id.slice(-5) ?? '', '--json');
    expect([code, JSON.parse(stdout)]).toEqual([0, { id: node?.id, draining: false }]);
    expect((await nodes())[0]?.draining).toBe(false);
    expect((await home.run('node', 'drain', 'elsewhere')).code).toBe(2);
  });

  it('take in the node of another home, once for each token', async () => {
    const other = new TestHome();
    try {
      const { token }: { token: string } = JSON.parse((await home.run('node', 'token', '--json')).stdout);
      const url = (await ready()).url ?? '';
      expect((await other.run('node', 'join', url, '--token', token, '--name', 'second')).code).toBe(0);
      await eventually(async () => {
        const fleet: { nodes: { name: string; online: boolean }[] } = JSON.parse((await home.run('fleet', '--json')).stdout);
        return fleet.nodes.some((node) => node.name === 'second' && node.online) ? true : undefined;
      });
      const status = await other.status();
      expect([status.ready, status.server, status.database, status.url]).toEqual([true, null, null, url]);
      const refused = await other.run('missions');
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('home_is_node')]);
      const third = new TestHome();
      const again = await third.run('node', 'join', url, '--token', token, '--name', 'third');
      await third.remove();
      expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('join_token_invalid')]);
    } finally {
      await other.remove();
    }
  });

  it('are stopped, and nothing is left', async () => {
    const before = await home.status();
    const { code, stdout } = await home.run('down', '--json');
    expect([code, JSON.parse(stdout)]).toEqual([0, { stopped: ['node agent', 'server', 'database', 'supervisor'], left: [], refused: [] }]);
    for (const view of [before.supervisor, before.server, before.nodeAgent, before.database])
      expect(existsSync(`/proc/${view?.pid}/cwd`)).toBe(false);
    expect(await home.status()).toMatchObject({ ready: false, supervisor: null, server: null, database: null, nodeAgent: null });
  });

  it('end by themselves when a command started them and nobody uses them', async () => {
    const { code } = await home.start(['missions'], { env: { FIRECREW_IDLE_STOP_MS: '1000' } }).ended;
    expect(code).toBe(0);
    await eventually(async () => {
      const status = await home.status();
      return status.supervisor === null && status.database === null ? true : undefined;
    });
  });

  it('refuse settings that are not valid before anything is started', async () => {
    const { code, stderr } = await home.start(['up'], { env: { FIRECREW_LISTEN: 'nowhere' } }).ended;
    expect([code, stderr]).toEqual([2, expect.stringContaining('settings_invalid')]);
    expect((await home.status()).supervisor).toBeNull();
  });

  it('tell at once why a database cannot be used', async () => {
    const { code, stderr } = await home.start(['up', '--listen', '127.0.0.1:1', '--json'], { env: { FIRECREW_PG_BIN: '/nonexistent' } })
      .ended;
    expect(code).toBe(1);
    expect(stderr).toContain('postgres');
  });
});
