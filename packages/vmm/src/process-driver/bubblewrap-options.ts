import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { BootSpec, ReadOnlyBind } from '../port/driver.ts';
import { ETC_NAMES, type GuestFolder, IN_GUEST } from './guest-layout.ts';
import { NAMESPACE_OPTIONS } from './probe-bubblewrap.ts';

/** Where the payload and the socket are in the guest. */
export const PAYLOAD = {
  node: '/opt/firecrew/bin/node',
  bundle: '/opt/firecrew/guest-agent.cjs',
  caBundle: '/opt/firecrew/ca.pem',
  linkFolder: '/opt/firecrew/link',
  socketPath: '/opt/firecrew/link/s',
} as const;

/** Folders that hold the host's programs and libraries; a link among them is made again as a link. */
const SYSTEM_FOLDERS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Parts of the host's `/etc` that programs need and that hold no account and no key. */
const ETC_PARTS = [
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/ca-certificates.conf',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/pki/ca-trust',
  '/etc/pki/tls/certs',
  '/etc/protocols',
  '/etc/services',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
  '/etc/timezone',
];

/** All options of bubblewrap for one guest; they travel over a descriptor, since its command line can be read inside. */
export async function bubblewrapOptions(spec: BootSpec, places: GuestFolder, disableUserns: boolean): Promise<string[]> {
  const tmpBytes = spec.limits.diskMib * 1024 * 1024;
  return [
    ...NAMESPACE_OPTIONS,
    ...(disableUserns ? ['--disable-userns'] : []),
    ...['--uid', '1000', '--gid', '1000', '--hostname', 'firecrew'],
    ...['--bind', places.root, '/', '--ro-bind', '/usr', '/usr'],
    ...(await systemFolders()),
    ...ETC_PARTS.flatMap((path) => ['--ro-bind-try', path, path]),
    ...ETC_NAMES.flatMap((name) => ['--ro-bind', join(places.etc, name), `/etc/${name}`]),
    ...['--dev', '/dev', '--proc', '/proc', '--size', String(tmpBytes), '--tmpfs', IN_GUEST.tmp],
    ...['--ro-bind-try', '/nix/store', '/nix/store'],
    ...outermostFirst(spec.bindPaths).flatMap(({ source, target }) => ['--ro-bind-try', source, target]),
    ...['--ro-bind', spec.guestAgent.node, PAYLOAD.node, '--ro-bind', spec.guestAgent.bundle, PAYLOAD.bundle],
    ...(spec.caBundle === null ? [] : ['--ro-bind', spec.caBundle, PAYLOAD.caBundle]),
    ...['--ro-bind', places.linkFolder, PAYLOAD.linkFolder],
    ...['--chdir', '/', '--clearenv'],
  ];
}

async function systemFolders(): Promise<string[]> {
  const options: string[] = [];
  for (const path of SYSTEM_FOLDERS) {
    try {
      if ((await lstat(path)).isSymbolicLink()) options.push('--symlink', await readlink(path), path);
      else options.push('--ro-bind', path, path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
  return options;
}

/** A bind over another hides it, so outer folders come first. Nothing is bound over what the guest itself is made of. */
function outermostFirst(binds: readonly ReadOnlyBind[]): ReadOnlyBind[] {
  const own = ['/', ...Object.values(IN_GUEST), '/firecrew', '/home', '/dev', '/proc', '/etc', '/usr', '/opt/firecrew'];
  return binds.filter(({ target }) => !own.includes(target)).sort((a, b) => a.target.length - b.target.length);
}
