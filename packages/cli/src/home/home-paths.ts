import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/** Files and folders of one home. */
export interface HomePaths {
  readonly root: string;
  readonly identity: string;
  readonly config: string;
  readonly run: string;
  readonly token: string;
  readonly settings: string;
  readonly serverFile: string;
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
  readonly node: string;
  readonly shims: string;
  readonly database: string;
  readonly dataDir: string;
  readonly logs: string;
  readonly client: string;
}

/** Names that may lie in a home; a folder with anything else and no `home.json` is somebody's own. */
export const HOME_NAMES: readonly string[] = ['home.json', 'config.json', 'run', 'server', 'node', 'database', 'logs', 'client'];

/** The layout of a home rooted at `root`. */
export function homePaths(root: string): HomePaths {
  const run = join(root, 'run');
  const node = join(root, 'node');
  const database = join(root, 'database');
  return {
    root,
    identity: join(root, 'home.json'),
    config: join(root, 'config.json'),
    run,
    token: join(run, 'token'),
    settings: join(run, 'settings.json'),
    serverFile: join(run, 'server.json'),
    serverConfig: join(run, 'server-config.json'),
    supervisorFile: join(run, 'supervisor.json'),
    problems: join(run, 'problems.json'),
    databaseFile: join(run, 'database.json'),
    nodeConfig: join(run, 'node-config.json'),
    nodeKey: join(run, 'node-key.pem'),
    joinFile: join(run, 'joined.json'),
    callerPath: join(run, 'caller-path'),
    lastUse: join(run, 'last-use'),
    keep: join(run, 'keep'),
    server: join(root, 'server'),
    node,
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
