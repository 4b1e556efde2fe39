import { FirecrewClient } from '@firecrew/sdk';
import { Agent } from 'undici';
import { UsageError } from '../exit-codes.ts';
import { chooseHome } from '../home/home-paths.ts';
import { type Home, openExistingHome, openHome } from '../home/open-home.ts';
import type { Output } from '../render/output.ts';
import { type EnsureOptions, ensureRunning } from '../server/ensure-running.ts';
import { readSettings } from '../settings/read-settings.ts';
import { mergeSettings, type Settings, settingsOfEnvironment } from '../settings/settings.ts';
import { readJoined } from '../supervisor/service-config.ts';

/** How long to wait for a connection to the server, in ms. */
export const CONNECT_TIMEOUT_MS = 10_000;

/** What every command gets. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly out: Output;
  readonly homeFlag: string | undefined;
  readonly version: string;
}

/** The home of this call; made where it is not there. */
export function homeOf(context: CommandContext): Home {
  return openHome(homePathOf(context));
}

/** The home of this call if it is there. */
export function existingHomeOf(context: CommandContext): Home | undefined {
  return openExistingHome(homePathOf(context));
}

/** Where the home of this call is. */
export function homePathOf(context: CommandContext): string {
  return chooseHome(context.homeFlag, context.env, process.getuid?.() ?? -1);
}

/** The settings of this call. */
export function settingsOf(context: CommandContext, home: Home, flags: unknown = {}): Settings {
  return readSettings(home.paths, context.env, flags);
}

/** A client of this home's server, with its connections. */
export interface Connection {
  readonly client: FirecrewClient;
  readonly home: Home;
  /** A client of the same server under another token. */
  as(token: string): FirecrewClient;
  close(): Promise<void>;
}

/**
 * A client whose server is started where it is missing, now and whenever a call finds it gone: the address is asked for before each call,
 * so a server that was started again is found under its new one.
 */
export async function connectServer(context: CommandContext, options: Partial<EnsureOptions> = {}): Promise<Connection> {
  const home = homeOf(context);
  const joined = readJoined(home);
  if (joined !== undefined) throw isNode(home, joined.serverUrl);
  const ensure: EnsureOptions = {
    settings: settingsOf(context, home),
    env: context.env,
    keep: false,
    onStart: () => context.out.note('starting firecrew ...'),
    onNote: (text) => context.out.note(text),
    ...options,
  };
  const first = await ensureRunning(home, ensure);
  let known = first.url;
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, keepAliveTimeout: 1_000 });
  const url = async (): Promise<string> => {
    const now = known ?? (await ensureRunning(home, { ...ensure, onStart: undefined })).url;
    // Only the first call may believe what was found before it.
    known = undefined;
    if (now !== undefined) return now;
    throw isNode(home, 'another host');
  };
  const as = (token: string): FirecrewClient => new FirecrewClient({ url, token, dispatcher });
  return { client: as(home.token), home, as, close: async () => await dispatcher.destroy() };
}

function isNode(home: Home, server: string): UsageError {
  return new UsageError('home_is_node', `${home.paths.root} is a node of the server at ${server} and has none of its own`, {
    id: home.paths.root,
    action: 'Run this on the host of the server, or with another home (FIRECREW_HOME).',
  });
}

/** The settings of the home of this call, or of its environment alone where there is no home yet; none is made. */
export function settingsHere(context: CommandContext): Settings {
  const home = existingHomeOf(context);
  if (home !== undefined) return readSettings(home.paths, context.env, {});
  return mergeSettings([{ name: 'the environment (FIRECREW_*)', value: settingsOfEnvironment(context.env) }]);
}
