import { hostname } from 'node:os';
import type { FleetView } from '@firecrew/protocol';
import { FirecrewClient } from '@firecrew/sdk';
import { UsageError } from '../exit-codes.ts';
import { replaceFile } from '../home/write-file.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';
import { ensureRunning } from '../server/ensure-running.ts';
import { publicKeyOf, readJoined } from '../supervisor/service-config.ts';
import { readProcesses } from '../supervisor/supervisor-state.ts';
import { type CommandContext, homeOf, settingsOf } from './context.ts';
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
    node.capabilities?.drivers.map((driver) => driver.driver).join(', ') ?? '-',
    `${node.verdict.fit ? '' : 'unfit: '}${cleanLine(node.verdict.line, 120)}`,
  ]);
  return [
    ...renderTable(['node', 'state', 'free', 'committed', 'drivers', 'about'], rows),
    '',
    `${fleet.freeSlots} free ${fleet.freeSlots === 1 ? 'slot' : 'slots'}`,
  ];
}

/** `firecrew node token` */
export async function nodeTokenCommand(context: CommandContext, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const reply = await client.createJoinToken();
    if (json) context.out.line(JSON.stringify(reply));
    else {
      context.out.line(reply.token);
      context.out.note(`one host can join with it until ${reply.expiresAt}: firecrew node join URL --token TOKEN --name ${hostname()}`);
    }
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
  const { nodeId } = await new FirecrewClient({ url: serverUrl, token: 'none' }).join({ token, name, publicKey: publicKeyOf(home) });
  replaceFile(home.paths.joinFile, `${JSON.stringify({ serverUrl, nodeId, name })}\n`);
  await ensureRunning(home, { settings: settingsOf(context, home), env: context.env, keep: true });
  context.out.line(options.json ? JSON.stringify({ nodeId, name, serverUrl }) : `this host is node ${name} (${nodeId}) of ${serverUrl}`);
  return 0;
}
