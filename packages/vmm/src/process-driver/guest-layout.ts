import { chmod, chown, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import { MAX_SOCKET_PATH_BYTES } from '@firecrew/link';
import type { BootSpec, GuestOwner, GuestPaths } from '../port/driver.ts';

/** Where the guest's folders are below its root. */
export const IN_GUEST = {
  workspace: '/workspace',
  home: '/home/agent',
  tmp: '/tmp',
  agentDir: '/firecrew/agent',
  taskDir: '/firecrew/task',
  state: '/firecrew/state',
} as const;

/** Host paths of one VM's private folder. */
export interface GuestFolder {
  readonly folder: string;
  /** The guest's disk: its root under bubblewrap. */
  readonly root: string;
  readonly linkFolder: string;
  readonly socketPath: string;
  readonly etc: string;
  readonly log: string;
}

/** The places in a VM's folder. */
export function guestFolder(folder: string): GuestFolder {
  const linkFolder = join(folder, 'l');
  return {
    folder,
    root: join(folder, 'root'),
    linkFolder,
    socketPath: join(linkFolder, 's'),
    etc: join(folder, 'etc'),
    log: join(folder, 'agent.log'),
  };
}

/** The guest's folders as its execs see them. */
export function guestPaths(rootOfGuest: string): GuestPaths & { readonly state: string } {
  const at = (path: string): string => (rootOfGuest === '/' ? path : join(rootOfGuest, path));
  return {
    workspace: at(IN_GUEST.workspace),
    home: at(IN_GUEST.home),
    tmp: at(IN_GUEST.tmp),
    agentDir: at(IN_GUEST.agentDir),
    taskDir: at(IN_GUEST.taskDir),
    state: at(IN_GUEST.state),
  };
}

/** Files of a guest's `/etc` by name: one account for commands, and the names of the loopback. */
export const ETC_FILES: Readonly<Record<string, string>> = {
  passwd:
    'root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n',
  group: 'root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost firecrew\n::1 localhost\n',
  'resolv.conf': '',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
  hostname: 'firecrew\n',
};

/** Names of the generated files of the guest's `/etc`. */
export const ETC_NAMES: readonly string[] = Object.keys(ETC_FILES);

/** Checks what a VM is to be made of before anything is made. Throws `bad_boot_spec`, `socket_path_too_long`. */
export function checkBootSpec(spec: BootSpec): void {
  const paths = [spec.folder, spec.guestAgent.node, spec.guestAgent.bundle, ...(spec.caBundle === null ? [] : [spec.caBundle])];
  const binds = spec.bindPaths.flatMap(({ source, target }) => [source, target]);
  const bad = [...paths, ...binds].find((path) => !isAbsolute(path) || path.includes('\0'));
  if (bad !== undefined) throw badSpec(spec, `${JSON.stringify(bad)} is no absolute path`);
  if (spec.layer !== undefined) throw badSpec(spec, 'a sandbox has no disk that could lie on a layer');
  if (!/^[A-Za-z0-9_.:/-]{8,200}$/.test(spec.attemptMarker))
    throw badSpec(spec, 'the attempt marker has another form than 8 to 200 plain characters');
  const length = Buffer.byteLength(guestFolder(spec.folder).socketPath);
  if (length > MAX_SOCKET_PATH_BYTES) {
    throw new CodedError(
      'socket_path_too_long',
      `The socket path of VM ${spec.vmId} has ${length} bytes; Linux allows ${MAX_SOCKET_PATH_BYTES}.`,
      {
        id: spec.vmId,
        action: 'Use a shorter home or runtime folder.',
      },
    );
  }
}

/** Makes the folder and everything in it that must be there before the guest starts. Throws `bad_boot_spec` when it holds something. */
export async function makeGuestFolder(spec: BootSpec): Promise<GuestFolder> {
  const places = guestFolder(spec.folder);
  await mkdir(dirname(places.folder), { recursive: true, mode: 0o700 });
  await mkdir(places.folder, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  if ((await readdir(places.folder)).length > 0) throw badSpec(spec, `its folder ${places.folder} is not empty`);
  await chmod(places.folder, 0o700);
  if (spec.owner !== undefined) await checkWalkable(spec, places.folder, spec.owner);
  const made = [places.root, places.linkFolder, places.etc];
  for (const path of Object.values(IN_GUEST)) {
    for (let at = join(places.root, path); at !== places.root; at = dirname(at)) made.push(at);
  }
  for (const path of [...new Set(made)].sort()) await mkdir(path, { mode: 0o700 });
  for (const [name, text] of Object.entries(ETC_FILES)) await writeFile(join(places.etc, name), text, { mode: 0o444 });
  if (spec.owner !== undefined) {
    // The guest's user passes through the folder, as no other does, and owns what is in it, but cannot put something else in a place of it.
    await chown(places.folder, 0, spec.owner.gid);
    await chmod(places.folder, 0o710);
    for (const path of made) await chown(path, spec.owner.uid, spec.owner.gid);
  }
  return places;
}

async function checkWalkable(spec: BootSpec, folder: string, owner: GuestOwner): Promise<void> {
  for (let at = dirname(folder); ; at = dirname(at)) {
    const { mode, uid, gid } = await stat(at);
    const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) throw badSpec(spec, `user ${owner.uid} cannot pass through ${at}`);
    if (at === '/') return;
  }
}

function badSpec(spec: BootSpec, why: string): CodedError {
  return new CodedError('bad_boot_spec', `VM ${spec.vmId} cannot be made: ${why}.`, {
    id: spec.vmId,
    action: 'Correct what the VM is made of; trying again gives the same.',
  });
}
