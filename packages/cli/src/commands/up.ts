import { FirecrewClient } from '@firecrew/sdk';
import { ensureRunning } from '../server/ensure-running.ts';
import { readStarted } from '../settings/read-settings.ts';
import { waitUntil } from '../supervisor/processes.ts';
import { type CommandContext, homeOf, settingsOf } from './context.ts';

/** How long `up` waits for the node of this machine to say hello, in ms. */
export const NODE_ONLINE_MS = 20_000;

export interface UpOptions {
  readonly json: boolean;
  /** Settings of the command line. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** `firecrew up`: starts what is missing and leaves it running. */
export async function upCommand(context: CommandContext, options: UpOptions): Promise<number> {
  const home = homeOf(context);
  const settings = settingsOf(context, home, options.settings);
  const before = readStarted(home.paths)?.settings;
  const onStart = (): void => {
    if (!options.json) context.out.note('starting firecrew ...');
  };
  const databaseFlag = options.settings.databaseUrl !== undefined;
  const onNote = (text: string): void => context.out.note(text);
  const services = await ensureRunning(home, { settings, databaseFlag, env: context.env, keep: true, onStart, onNote });
  const stale = !services.started && before !== undefined && JSON.stringify(before) !== JSON.stringify(settings);
  if (stale) context.out.note('the settings have changed: run `firecrew down` and `firecrew up` to use them');
  const { url } = services;
  const online = url === undefined ? true : await nodeIsOnline(url, home.token);
  if (!online) context.out.note(`the node of this machine is not online yet; its log is ${home.paths.logs}/node-agent.log`);
  if (options.json)
    context.out.line(JSON.stringify({ home: home.paths.root, url: url ?? null, started: services.started, nodeOnline: online }));
  else context.out.line(`firecrew is up${url === undefined ? ' as a node' : ` at ${url}`} (home ${home.paths.root})`);
  return 0;
}

async function nodeIsOnline(url: string, token: string): Promise<boolean> {
  const client = new FirecrewClient({ url, token });
  return await waitUntil(async () => {
    const fleet = await client.fleet().catch(() => undefined);
    return fleet?.nodes.some((node) => node.online) === true;
  }, NODE_ONLINE_MS);
}
