import { randomBytes } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { CodedError, messageOf, newId } from '@firecrew/base';
import { nodeIdSchema } from '@firecrew/protocol';
import * as z from 'zod';
import { checkParents } from './check-parents.ts';
import { HOME_NAMES, type HomePaths, homePaths } from './home-paths.ts';
import { createFile, readText } from './write-file.ts';

/** The layout of homes that this version writes. */
export const HOME_LAYOUT = 1;
/** Longest path of a home in bytes: sockets below it have paths of at most 107. */
export const HOME_PATH_MAX_BYTES = 58;

const TOKEN = /^fct_[A-Za-z0-9_-]{43}$/;
const identitySchema = z.object({ homeId: z.string().min(8), layout: z.literal(HOME_LAYOUT), nodeId: nodeIdSchema });

/** An opened home. */
export interface Home {
  readonly paths: HomePaths;
  readonly homeId: string;
  readonly nodeId: string;
  readonly token: string;
}

/**
 * Opens the home at `root`, makes it where it is not there, and checks whose it is.
 * Throws `home_unusable`, `home_path_too_long`, `home_not_ours`, `home_occupied`, `home_too_new`, `home_damaged`, `home_parent_unsafe`.
 */
export function openHome(root: string): Home {
  const self = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const paths = homePaths(makeRoot(root));
  if (Buffer.byteLength(paths.root) > HOME_PATH_MAX_BYTES) {
    throw new CodedError('home_path_too_long', `the path of the home ${paths.root} has more than ${HOME_PATH_MAX_BYTES} bytes`, {
      id: paths.root,
      action: 'Choose a shorter one with FIRECREW_HOME; sockets lie below it.',
    });
  }
  checkOwner(paths, self.uid);
  checkParents(paths.root, self);
  const identity = readIdentity(paths) ?? makeIdentity(paths);
  makeFolders(paths, self.uid === 0);
  createFile(paths.token, `fct_${randomBytes(32).toString('base64url')}\n`);
  return { paths, homeId: identity.homeId, nodeId: identity.nodeId, token: readToken(paths) };
}

/** Makes the folder where it is not there, and gives its path without links. */
function makeRoot(root: string): string {
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    return realpathSync(root);
  } catch (cause) {
    throw new CodedError('home_unusable', `the home ${root} cannot be made: ${messageOf(cause)}`, {
      id: root,
      action: 'Choose a folder of your own with FIRECREW_HOME.',
      cause,
    });
  }
}

function readToken(paths: HomePaths): string {
  const token = (readText(paths.token) ?? '').trim();
  if (TOKEN.test(token)) return token;
  throw new CodedError('home_damaged', `${paths.token} holds no token`, {
    id: paths.token,
    action: 'Remove it: a new one is made. Then run firecrew down and firecrew up.',
  });
}

/** Opens a home that is there already; undefined where there is none, and nothing is made. */
export function openExistingHome(root: string): Home | undefined {
  return readText(homePaths(root).identity) === undefined ? undefined : openHome(root);
}

function checkOwner(paths: HomePaths, uid: number): void {
  const stats = lstatSync(paths.root);
  if (stats.uid !== uid) {
    throw new CodedError('home_not_ours', `the home ${paths.root} belongs to uid ${stats.uid}, and this is uid ${uid}`, {
      id: paths.root,
      action: 'Run firecrew as its owner, or choose another home with FIRECREW_HOME.',
    });
  }
}

function makeIdentity(paths: HomePaths): z.infer<typeof identitySchema> {
  const other = readdirSync(paths.root).find((name) => !HOME_NAMES.includes(name));
  if (other !== undefined) {
    throw new CodedError('home_occupied', `${paths.root} holds ${other} and is no home of firecrew`, {
      id: paths.root,
      action: 'Choose an empty folder with FIRECREW_HOME.',
    });
  }
  const identity = { homeId: `home_${randomBytes(12).toString('hex')}`, layout: HOME_LAYOUT, nodeId: newId('node') };
  createFile(paths.identity, `${JSON.stringify(identity)}\n`);
  const made = readIdentity(paths);
  if (made !== undefined) return made;
  throw new CodedError('home_damaged', `${paths.identity} cannot be read`, { id: paths.root });
}

function readIdentity(paths: HomePaths): z.infer<typeof identitySchema> | undefined {
  const text = readText(paths.identity);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const layout = z.object({ layout: z.int() }).safeParse(value).data?.layout;
  if (layout !== undefined && layout > HOME_LAYOUT) {
    throw new CodedError('home_too_new', `the home ${paths.root} has layout ${layout}; this version knows ${HOME_LAYOUT}`, {
      id: paths.root,
      action: 'Use the newer firecrew that made it, or choose another home with FIRECREW_HOME.',
    });
  }
  const parsed = identitySchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new CodedError('home_damaged', `${paths.identity} is not what firecrew writes`, {
    id: paths.root,
    action: 'Restore it from a backup, or choose another home with FIRECREW_HOME.',
  });
}

/** One folder for each role. Attempts, server and database run as other accounts when this is root: they walk through, and see nothing. */
function makeFolders(paths: HomePaths, isRoot: boolean): void {
  const walkable = isRoot ? 0o711 : 0o700;
  const folders: (readonly [string, number])[] = [
    [paths.root, walkable],
    [paths.run, 0o700],
    [paths.server, 0o700],
    [paths.node, 0o711],
    [paths.database, walkable],
    [paths.logs, 0o700],
    [paths.client, 0o700],
  ];
  if (isRoot) folders.push([paths.versions, 0o755]);
  for (const [folder, mode] of folders) {
    mkdirSync(folder, { recursive: true, mode });
    // The process's file mode mask may have taken away the right to walk through.
    if ((lstatSync(folder).mode & 0o7777) !== mode) chmodSync(folder, mode);
  }
}
