import { randomBytes } from 'node:crypto';
import { readdirSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { CodedError, installVersion, removeOldVersions } from '@firecrew/base';
import type { HomePaths } from '../home/home-paths.ts';
import { type AppEntries, demandEntry } from './locate-apps.ts';
import { type Account, serverAccount } from './server-account.ts';
import { takeOver } from './take-over.ts';

/** What is started as the server, and as whom; undefined is the account of the supervisor. */
export interface ServerProgram {
  readonly node: string;
  readonly entry: string;
  readonly account: Account | undefined;
}

/**
 * The server's program. Root starts it as an account of its own, from a copy that this account can read and not change, in a folder that
 * belongs to it. Throws `app_missing`, `server_folder_unreachable`.
 */
export async function prepareServerProgram(paths: HomePaths, apps: AppEntries): Promise<ServerProgram> {
  const account = serverAccount();
  if (account === undefined) return { node: process.execPath, entry: demandEntry(apps.server), account };
  demandWalkable(paths.root, account);
  const { digest, folder } = await installVersion(paths.versions, {
    node: process.execPath,
    'server.mjs': demandEntry(apps.server),
    migrations: demandEntry(apps.migrations),
  });
  // Only a server that has ended is started anew, so nothing runs from the others.
  if (readdirSync(paths.versions).length > 1) await removeOldVersions(paths.versions, digest);
  await takeOver(paths.server, account);
  linkServerFile(paths);
  return { node: join(folder, 'node'), entry: join(folder, 'server.mjs'), account };
}

/** The environment of a server that has an account of its own: nothing that leads into the home of root. */
export function serverEnvironment(env: Readonly<Record<string, string>>, home: string): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => !/^(XDG_.*|TMPDIR)$/.test(name));
  return { ...Object.fromEntries(kept), HOME: home, USER: 'firecrew-server', LOGNAME: 'firecrew-server' };
}

/** Puts a link where people and programs look for the address, in place of what an earlier version wrote there. */
function linkServerFile({ serverFile, serverLink }: HomePaths): void {
  const temporary = `${serverLink}.${randomBytes(6).toString('hex')}.tmp`;
  symlinkSync(relative(dirname(serverLink), serverFile), temporary);
  renameSync(temporary, serverLink);
}

/** Refuses a home that another account cannot walk to, naming the folder that bars the way. */
function demandWalkable(path: string, account: Account): void {
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder);
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0)
      throw new CodedError('server_folder_unreachable', `the server runs as uid ${account.uid}, which cannot walk through ${folder}`, {
        id: path,
        action: `Allow it with chmod o+x ${folder}, or choose a home such as /var/lib/firecrew.`,
      });
    if (folder === dirname(folder)) return;
  }
}
