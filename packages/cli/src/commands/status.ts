import type { ProcessIdentity } from '@firecrew/base';
import { renderTable } from '../render/table.ts';
import { findServer } from '../server/find-server.ts';
import { readJoined } from '../supervisor/service-config.ts';
import { readProblems, readProcesses } from '../supervisor/supervisor-state.ts';
import { type CommandContext, existingHomeOf, homePathOf } from './context.ts';

/** `firecrew status`: what runs of this home, without starting anything. Exit code 0 when it is ready, else 1. */
export async function statusCommand(context: CommandContext, options: { readonly json: boolean }): Promise<number> {
  const home = existingHomeOf(context);
  if (home === undefined) {
    const root = homePathOf(context);
    if (options.json)
      context.out.line(
        JSON.stringify({
          home: root,
          homeId: null,
          ready: false,
          state: 'no_home',
          url: null,
          supervisor: null,
          server: null,
          database: null,
          nodeAgent: null,
          shims: [],
          restarts: 0,
          problems: [],
        }),
      );
    else context.out.line(`nothing has been started in ${root} yet; start with: firecrew up`);
    return 1;
  }
  const found = await findServer(home);
  const processes = readProcesses(home.paths);
  const joined = readJoined(home);
  const ready = joined === undefined ? found.ready : processes.roles.nodeAgent !== undefined;
  const state = ready ? 'ready' : found.ready ? 'ready' : found.reason;
  const view = (identity: ProcessIdentity | undefined) =>
    identity === undefined ? null : { pid: identity.pid, startTicks: identity.startTicks };
  const server = found.file !== undefined && processes.roles.server?.pid === found.file.pid ? found.file : undefined;
  const status = {
    home: home.paths.root,
    homeId: home.homeId,
    ready,
    state,
    url: found.ready ? found.url : (joined?.serverUrl ?? null),
    version: server?.version ?? null,
    supervisor: view(processes.supervisor),
    server: view(processes.roles.server),
    database: view(processes.roles.database),
    nodeAgent: view(processes.roles.nodeAgent),
    shims: processes.shims.map(({ turnId, attempt, pid, startTicks }) => ({ turnId, attempt, pid, startTicks })),
    restarts: processes.restarts,
    problems: readProblems(home.paths),
  };
  if (options.json) context.out.line(JSON.stringify(status));
  else for (const line of renderStatus(status, home.paths.logs)) context.out.line(line);
  return ready ? 0 : 1;
}

interface StatusView {
  readonly home: string;
  readonly ready: boolean;
  readonly state: string;
  readonly url: string | null;
  readonly supervisor: { pid: number } | null;
  readonly server: { pid: number } | null;
  readonly database: { pid: number } | null;
  readonly nodeAgent: { pid: number } | null;
  readonly shims: readonly { turnId: string; attempt: number; pid: number }[];
  readonly restarts: number;
  readonly problems: readonly { role: string; code: string; message: string }[];
}

/** The status as lines for people. */
export function renderStatus(status: StatusView, logs: string): string[] {
  const pid = (view: { pid: number } | null): string => (view === null ? '-' : String(view.pid));
  const rows = [
    ['supervisor', pid(status.supervisor), `${logs}/supervisor.log`],
    ['database', pid(status.database), ''],
    ['server', pid(status.server), `${logs}/server.log`],
    ['node agent', pid(status.nodeAgent), `${logs}/node-agent.log`],
    ...status.shims.map((shim) => ['shim', String(shim.pid), `${shim.turnId} attempt ${shim.attempt}`]),
  ];
  return [
    status.ready ? `ready at ${status.url}` : `not ready (${status.state.replaceAll('_', ' ')}); start with: firecrew up`,
    `home ${status.home}`,
    ...(status.restarts > 0 ? [`restarts since the first start: ${status.restarts}`] : []),
    ...status.problems.map((problem) => `problem: ${problem.role}: ${problem.code}: ${problem.message}`),
    '',
    ...renderTable(['process', 'pid', 'about'], rows),
  ];
}
