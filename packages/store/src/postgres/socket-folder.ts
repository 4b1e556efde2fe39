import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CodedError } from '@firecrew/base';
import type { DatabaseUser } from './database-user.ts';
import { SOCKET_PATH_MAX_BYTES } from './limits.ts';

/** The port in the name of the socket; no TCP port is opened. */
export const SOCKET_PORT = 5432;

/** Refuses a run folder in which the socket's path would be cut off: `socket_path_too_long`. */
export function assertSocketFits(runDir: string): void {
  // What mkdtemp and the server add: a tag, six random characters, the socket's name.
  const bytes = Buffer.byteLength(join(runDir, `pg-${'0'.repeat(8)}-XXXXXX`, `.s.PGSQL.${SOCKET_PORT}`));
  if (bytes <= SOCKET_PATH_MAX_BYTES) return;
  throw new CodedError(
    'socket_path_too_long',
    `sockets in ${runDir} would have paths of ${bytes} bytes; ${SOCKET_PATH_MAX_BYTES} are possible`,
    {
      id: runDir,
      action: 'Choose a run folder with a shorter path.',
    },
  );
}

/** Where a server's socket is. */
export interface SocketFolder {
  /** The folder of this start. */
  readonly path: string;
  /** A link to it that keeps its name over restarts, so that clients need not be told of them. */
  readonly link: string;
}

/**
 * A new folder for one start's socket, since the socket's own lock file goes stale when a server is killed; those of earlier starts are
 * removed. It is 0700, or 0711 when the server runs as another account and a third one has to reach the socket.
 */
export async function makeSocketFolder(runDir: string, dataDir: string, user: DatabaseUser | undefined): Promise<SocketFolder> {
  await mkdir(runDir, { recursive: true, mode: user === undefined ? 0o700 : 0o711 });
  const link = join(runDir, `pg-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}`);
  const prefix = `${basename(link)}-`;
  for (const name of await readdir(runDir)) {
    if (name.startsWith(prefix)) await rm(join(runDir, name), { recursive: true, force: true });
  }
  const path = await mkdtemp(join(runDir, prefix));
  if (user !== undefined) await chown(path, user.uid, user.gid);
  await chmod(path, user === undefined ? 0o700 : 0o711);
  await symlink(basename(path), `${path}.link`);
  await rename(`${path}.link`, link);
  return { path, link };
}

/** Removes the folder of one start, and the link while it still leads there. */
export async function removeSocketFolder({ path, link }: SocketFolder): Promise<void> {
  const target = await readlink(link).catch(() => undefined);
  if (target === basename(path)) await rm(link, { force: true });
  await rm(path, { recursive: true, force: true });
}
