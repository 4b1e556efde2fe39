import { rmSync } from 'node:fs';
import { isAlive, signalProcess } from '@firecrew/base';
import { FirecrewClient } from '@firecrew/sdk';
import type { Home } from '../home/open-home.ts';
import { findServer } from '../server/find-server.ts';
import { stopDatabaseProcess } from '../supervisor/database-role.ts';
import { stopProcess, waitUntil } from '../supervisor/processes.ts';
import { askHolder, lockName } from '../supervisor/start-lock.ts';
import { STOP_STEPS } from '../supervisor/supervise.ts';
import { readProcesses, readShims } from '../supervisor/supervisor-state.ts';
import { type CommandContext, existingHomeOf, homePathOf } from './context.ts';

/** How long running attempts may take to end when they are cancelled, and the supervisor to stop everything, in ms. */
export const CANCEL_TIMEOUT_MS = 90_000;
export const DOWN_TIMEOUT_MS = 75_000;
const SHIM_STEPS = [
  ['SIGTERM', 20_000],
  ['SIGKILL', 3_000],
] as const;

export interface DownOptions {
  readonly force: boolean;
  readonly json: boolean;
}

interface DownReport {
  readonly stopped: readonly string[];
  readonly left: readonly { role: string; pid: number }[];
  readonly refused: readonly string[];
}

/** `firecrew down`: stops node agent, server, database and supervisor, in this order. Refuses while attempts run, unless forced. */
export async function downCommand(context: CommandContext, options: DownOptions): Promise<number> {
  const home = existingHomeOf(context);
  if (home === undefined) {
    if (options.json) context.out.line(JSON.stringify({ stopped: [], left: [], refused: [] }));
    else context.out.line(`nothing runs in ${homePathOf(context)}`);
    return 0;
  }
  const say = (text: string): void => {
    if (!options.json) context.out.note(text);
  };
  let report = await stopHome(home, options.force, say);
  if (report.refused.length > 0 && !options.json && (await agreesToCancel(context, report.refused)))
    report = await stopHome(home, true, say);
  if (options.json) context.out.line(JSON.stringify(report));
  else for (const line of renderDown(report)) context.out.line(line);
  return report.left.length === 0 && report.refused.length === 0 ? 0 : 1;
}

/** Asks a person at a terminal; anybody else gets the refusal. */
async function agreesToCancel(context: CommandContext, missions: readonly string[]): Promise<boolean> {
  if (!context.out.isTerminal || process.stdin.isTTY !== true) return false;
  const { confirm, isCancel } = await import('@clack/prompts');
  const answer = await confirm({ message: `${missions.join(', ')} would be cancelled. Stop all the same?`, initialValue: false });
  return !isCancel(answer) && answer;
}

/** What `down` did, as lines. */
export function renderDown(report: DownReport): string[] {
  if (report.refused.length > 0) {
    return [
      `${report.refused.length} ${report.refused.length === 1 ? 'mission runs' : 'missions run'}: ${report.refused.join(', ')}`,
      'nothing was stopped; wait for them, or cancel them and stop: firecrew down --force',
    ];
  }
  const left = report.left.map(({ role, pid }) => `could not be stopped: ${role} (pid ${pid})`);
  if (left.length > 0) return left;
  return [report.stopped.length === 0 ? 'nothing was running' : `stopped: ${report.stopped.join(', ')}`];
}

async function stopHome(home: Home, force: boolean, say: (text: string) => void): Promise<DownReport> {
  const running = await runningMissions(home);
  if (running.length > 0 && !force) return { stopped: [], left: [], refused: running };
  if (running.length > 0) {
    say(`cancelling ${running.join(', ')} ...`);
    await cancelMissions(home, running);
  }
  rmSync(home.paths.keep, { force: true });
  const before = readProcesses(home.paths);
  const holder = await askHolder(lockName(home.paths.root, process.getuid?.() ?? 0), home.homeId, home.paths.root);
  const supervisor = holder.kind === 'holder' ? holder.holder : before.supervisor;
  if (supervisor !== undefined && isAlive(supervisor)) {
    say('stopping ...');
    signalProcess(supervisor, 'SIGTERM');
    if (!(await waitUntil(() => !isAlive(supervisor), DOWN_TIMEOUT_MS))) await stopProcess(supervisor, [['SIGKILL', 3_000]]);
  }
  // What a supervisor left that was gone, or did not manage.
  const { roles } = before;
  if (roles.nodeAgent !== undefined) await stopProcess(roles.nodeAgent, STOP_STEPS);
  if (force) for (const shim of readShims(home.paths)) await stopProcess(shim, SHIM_STEPS);
  if (roles.server !== undefined) await stopProcess(roles.server, STOP_STEPS);
  if (roles.database !== undefined) await stopDatabaseProcess(roles.database);
  const all = [
    { role: 'node agent', identity: roles.nodeAgent },
    { role: 'server', identity: roles.server },
    { role: 'database', identity: roles.database },
    { role: 'supervisor', identity: supervisor },
  ];
  const stopped: string[] = [];
  const left: { role: string; pid: number }[] = [];
  for (const { role, identity } of all) {
    if (identity === undefined) continue;
    if (isAlive(identity)) left.push({ role, pid: identity.pid });
    else stopped.push(role);
  }
  for (const shim of readShims(home.paths)) left.push({ role: `shim of ${shim.turnId}`, pid: shim.pid });
  return { stopped, left, refused: [] };
}

/** Missions that run; living shims when no server can be asked. */
async function runningMissions(home: Home): Promise<string[]> {
  const found = await findServer(home);
  if (!found.ready) return readShims(home.paths).map((shim) => shim.turnId);
  const client = new FirecrewClient({ url: found.url, token: home.token });
  return (await client.listMissions({ limit: 500 })).filter((mission) => mission.state === 'running').map((mission) => mission.id);
}

async function cancelMissions(home: Home, missions: readonly string[]): Promise<void> {
  const found = await findServer(home);
  if (!found.ready) return;
  const client = new FirecrewClient({ url: found.url, token: home.token });
  for (const id of missions) await client.cancel(id).catch(() => undefined);
  await waitUntil(async () => (await runningMissions(home)).length === 0, CANCEL_TIMEOUT_MS);
}
