import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/** Files and folders of one home. */
export interface HomePaths {
  readonly root: string;
  readonly identity: string;
  readonly config: string;
  /** Which database this home uses. */
  readonly homeDatabase: string;
  readonly run: string;
  readonly token: string;
  readonly settings: string;
  /** Written by the server. */
  readonly serverFile: string;
  /** Where people and programs look for it, in every home. */
  readonly serverLink: string;
  readonly serverConfig: string;
  readonly supervisorFile: string;
  readonly problems: string;
  readonly databaseFile: string;
  readonly nodeConfig: string;
  readonly nodeKey: string;
  readonly joinFile: string;
  readonly callerPath: string;
  readonly lastUse: string;
  readonly keep: string;
  readonly server: string;
  /** Programs of the server as root starts it: owned by root, readable by all. */
  readonly versions: string;
  /** Images, kernels and payloads of VMs. */
  readonly images: string;
  readonly node: string;
  /** One folder for each attempt of the node. */
  readonly turns: string;
  /** Set-ups that the node keeps. */
  readonly layers: string;
  readonly shims: string;
  readonly database: string;
  readonly dataDir: string;
  readonly logs: string;
  readonly client: string;
}

/** Names that may lie in a home; a folder with anything else and no `home.json` is somebody's own. */
export const HOME_NAMES: readonly string[] = [
  'home.json',
  'config.json',
  'home-database.json',
  'run',
  'server',
  'node',
  'database',
  'logs',
  'client',
  'versions',
  'images',
];

/** The layout of a home rooted at `root`. The server of a home of root's has an account of its own: its files lie in its own folder. */
export function homePaths(root: string, isRoots: boolean = process.getuid?.() === 0): HomePaths {
  const run = join(root, 'run');
  const server = join(root, 'server');
  const node = join(root, 'node');
  const database = join(root, 'database');
  return {
    root,
    identity: join(root, 'home.json'),
    config: join(root, 'config.json'),
    homeDatabase: join(root, 'home-database.json'),
    run,
    token: join(run, 'token'),
    settings: join(run, 'settings.json'),
    serverFile: isRoots ? join(server, 'server.json') : join(run, 'server.json'),
    serverLink: join(run, 'server.json'),
    serverConfig: isRoots ? join(server, 'config.json') : join(run, 'server-config.json'),
    supervisorFile: join(run, 'supervisor.json'),
    problems: join(run, 'problems.json'),
    databaseFile: join(run, 'database.json'),
    nodeConfig: join(run, 'node-config.json'),
    nodeKey: join(run, 'node-key.pem'),
    joinFile: join(run, 'joined.json'),
    callerPath: join(run, 'caller-path'),
    lastUse: join(run, 'last-use'),
    keep: join(run, 'keep'),
    server,
    versions: join(root, 'versions'),
    images: join(root, 'images'),
    node,
    turns: join(node, 'turns'),
    layers: join(node, 'layers'),
    shims: join(node, 'shims.json'),
    database,
    dataDir: join(database, 'data'),
    logs: join(root, 'logs'),
    client: join(root, 'client'),
  };
}

/** Where the home is: the flag, `FIRECREW_HOME`, as root `/var/lib/firecrew`, else the state folder of the user. */
export function chooseHome(flag: string | undefined, env: Readonly<Record<string, string | undefined>>, uid: number): string {
  const named = flag ?? env.FIRECREW_HOME;
  if (named !== undefined && named !== '') return resolve(named);
  if (uid === 0) return '/var/lib/firecrew';
  const state = env.XDG_STATE_HOME;
  // The specification of these folders says that a relative path is to be ignored.
  if (state !== undefined && isAbsolute(state)) return join(state, 'firecrew');
  return join(homedir(), '.local', 'state', 'firecrew');
}
