import { hostname } from 'node:os';
import { decideOperatorWay } from '@firecrew/egress-policy';
import { makeChain, tunnelDispatcher } from '@firecrew/egress-proxy';
import type { FleetView } from '@firecrew/protocol';
import { FirecrewClient } from '@firecrew/sdk';
import type { Agent } from 'undici';
import { UsageError } from '../exit-codes.ts';
import { replaceFile } from '../home/write-file.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';
import { ID_TAIL_MIN_CHARS } from '../run/find-mission.ts';
import { ensureRunning } from '../server/ensure-running.ts';
import type { Settings } from '../settings/settings.ts';
import { publicKeyOf, readJoined } from '../supervisor/service-config.ts';
import { readProcesses } from '../supervisor/supervisor-state.ts';
import { CONNECT_TIMEOUT_MS, type CommandContext, homeOf, settingsOf } from './context.ts';
import { withServer } from './missions.ts';

/** `firecrew fleet`: capacity as the placer sees it. */
export async function fleetCommand(context: CommandContext, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const fleet = await client.fleet();
    if (json) context.out.line(JSON.stringify(fleet));
    else for (const line of renderFleet(fleet)) context.out.line(line);
    return 0;
  });
}

/** The fleet as a table; an unfit node says why. */
export function renderFleet(fleet: FleetView): string[] {
  if (fleet.nodes.length === 0) return ['no nodes'];
  const rows = fleet.nodes.map((node) => [
    cleanLine(node.name, 40),
    node.online ? (node.draining ? 'draining' : 'online') : 'offline',
    String(node.verdict.freeSlots),
    String(node.verdict.committed),
    vmsOf(node),
    node.capabilities?.drivers.map((driver) => driver.driver).join(', ') ?? '-',
    routesOf(node),
    `${node.verdict.fit ? '' : 'unfit: '}${cleanLine(node.verdict.line, 120)}`,
  ]);
  const unusable = fleet.nodes.flatMap((node) =>
    (node.capabilities?.unavailable ?? []).map(
      ({ driver, detail }) => `${cleanLine(node.name, 40)} cannot use ${driver}: ${cleanLine(detail, 300)}`,
    ),
  );
  const lacking = fleet.nodes.flatMap((node) =>
    (node.capabilities?.drivers ?? []).flatMap((driver) =>
      (driver.lacking ?? []).map(
        ({ backend, detail }) =>
          `${cleanLine(node.name, 40)} cannot boot ${cleanLine(backend, 64)} with ${driver.driver}: ${cleanLine(detail, 300)}`,
      ),
    ),
  );
  return [
    ...renderTable(['node', 'state', 'free', 'committed', 'vms', 'drivers', 'model routes', 'about'], rows),
    '',
    ...unusable,
    ...lacking,
    `${fleet.freeSlots} free ${fleet.freeSlots === 1 ? 'slot' : 'slots'}`,
  ];
}

/** How many VMs and sandboxes a node says are on it; of one that does not say, or cannot, nothing is known. */
function vmsOf({ vms }: FleetView['nodes'][number]): string {
  return vms?.status === 'known' ? String(vms.vms.length) : '?';
}

/** Backends that a node has a model route for, with their formats; of a node that does not say so nothing is known. */
function routesOf({ capabilities }: FleetView['nodes'][number]): string {
  const routes = capabilities?.modelRoutes;
  if (routes === undefined) return '?';
  return routes.length === 0 ? '-' : routes.map(({ backend, format }) => `${cleanLine(backend, 40)} (${cleanLine(format, 40)})`).join(', ');
}

/** `firecrew node vms`: what is on each node, as the placer counts it. */
export async function nodeVmsCommand(context: CommandContext, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const { nodes } = await client.fleet();
    if (json) context.out.line(JSON.stringify(nodes.map(({ id, name, vms = null }) => ({ id, name, vms }))));
    else for (const line of renderVms(nodes)) context.out.line(line);
    return 0;
  });
}

/** The VMs of all nodes as a table; a node that cannot say has a line of its own. */
export function renderVms(nodes: FleetView['nodes']): string[] {
  const rows = nodes.flatMap(({ name, vms }) =>
    vms?.status !== 'known'
      ? []
      : vms.vms.map((vm) => [
          cleanLine(name, 40),
          `${vm.turnId}.${vm.attempt}`,
          cleanLine(vm.name, 32),
          vm.kind,
          vm.demand?.driver ?? '?',
          vm.demand === null ? '?' : `${vm.demand.memoryMib} MiB`,
        ]),
  );
  const silent = nodes.flatMap(({ name, vms }) => {
    if (vms?.status === 'known') return [];
    return [`${cleanLine(name, 40)} ${vms == null ? 'has not said' : `cannot say: ${cleanLine(vms.error, 300)}`}`];
  });
  const table = rows.length === 0 ? ['no VMs'] : renderTable(['node', 'attempt', 'vm', 'what for', 'driver', 'memory'], rows);
  return [...table, ...silent];
}

/** `firecrew node token` */
export async function nodeTokenCommand(context: CommandContext, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const reply = await client.createJoinToken();
    if (json) context.out.line(JSON.stringify(reply));
    else {
      context.out.line(reply.token);
      context.out.note(
        `one host can join with it until ${reply.expiresAt} by the server's clock: firecrew node join URL --token TOKEN --name ${hostname()}`,
      );
    }
    return 0;
  });
}

/** `firecrew node drain ID` and `undrain`: by name, by id, or by the last characters of an id. */
export async function nodeDrainCommand(
  context: CommandContext,
  text: string,
  options: { readonly draining: boolean; readonly json: boolean },
): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const { id, name } = matchNode(text, (await client.fleet()).nodes);
    const reply = await client.drainNode(id, options.draining);
    if (options.json) context.out.line(JSON.stringify(reply));
    else if (reply.draining) context.out.line(`node ${cleanLine(name, 40)} drains: nothing more is placed there, and what runs goes on`);
    else context.out.line(`node ${cleanLine(name, 40)} takes turns again`);
    return 0;
  });
}

/** `firecrew node join URL`: this home becomes a node of the server at URL, and has none of its own. */
export async function nodeJoinCommand(
  context: CommandContext,
  url: string,
  options: { readonly token: string; readonly name: string; readonly json: boolean },
): Promise<number> {
  if (!URL.canParse(url))
    throw new UsageError('usage_wrong', `${JSON.stringify(url)} is no URL`, { action: 'Write it as https://HOST[:PORT].' });
  const home = homeOf(context);
  const joined = readJoined(home);
  if (joined !== undefined)
    throw new UsageError('node_joined', `this home is a node of ${joined.serverUrl} already`, {
      action: 'Use another home with FIRECREW_HOME.',
    });
  if (readProcesses(home.paths).roles.server !== undefined)
    throw new UsageError('home_has_server', 'a server runs in this home', {
      id: home.paths.root,
      action: 'Stop it with firecrew down, or use another home with FIRECREW_HOME.',
    });
  const { token, name } = options;
  const serverUrl = new URL(url).origin;
  const settings = settingsOf(context, home);
  const dispatcher = tunnelTo(serverUrl, settings, context.env);
  const client = new FirecrewClient({ url: serverUrl, token: 'none', ...(dispatcher === undefined ? {} : { dispatcher }) });
  let nodeId: string;
  try {
    nodeId = (await client.join({ token, name, publicKey: publicKeyOf(home) })).nodeId;
  } finally {
    await dispatcher?.destroy();
  }
  replaceFile(home.paths.joinFile, `${JSON.stringify({ serverUrl, nodeId, name })}\n`);
  await ensureRunning(home, { settings, env: context.env, keep: true });
  context.out.line(options.json ? JSON.stringify({ nodeId, name, serverUrl }) : `this host is node ${name} (${nodeId}) of ${serverUrl}`);
  return 0;
}

/** Connections through the operator's proxy, where the settings say that a node reaches its server through it, and this one is not on this host or past it. */
function tunnelTo(serverUrl: string, { egressProxy }: Settings, env: CommandContext['env']): Agent | undefined {
  const url = new URL(serverUrl);
  if (egressProxy?.serverLink !== true || url.protocol !== 'https:') return undefined;
  const chain = makeChain(egressProxy, env);
  const isBehind = decideOperatorWay(chain.chain, url.hostname) === 'proxy';
  return isBehind ? tunnelDispatcher(chain, CONNECT_TIMEOUT_MS) : undefined;
}

/** The node of that name, id, or end of an id. Throws {@link UsageError} `usage_wrong` for none or several. */
export function matchNode<Node extends { readonly id: string; readonly name: string }>(text: string, nodes: readonly Node[]): Node {
  const exact = nodes.filter((node) => node.id === text || node.name === text);
  const found = exact.length > 0 || text.length < ID_TAIL_MIN_CHARS ? exact : nodes.filter((node) => node.id.endsWith(text));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  const what = found.length === 0 ? 'names no node' : `names ${found.length} nodes: ${found.map(({ id }) => id).join(', ')}`;
  throw new UsageError('usage_wrong', `${JSON.stringify(text)} ${what}`, { id: text, action: 'List them with: firecrew fleet --json' });
}
