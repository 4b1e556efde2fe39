import { existsSync, lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { SimulatorOptions } from './options.ts';

const AGENT = { node: '/opt/firecrew/bin/node', bundle: '/opt/firecrew/guest-agent.cjs', config: '/run/firecrew/agent.json' } as const;
const LINKED = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

/** The sandbox that the simulated guest's agent runs in: `root` is its disk, the host's programs are its image. */
export function sandboxArguments(root: string, { node, agentBundle }: SimulatorOptions): string[] {
  for (const folder of ['usr', 'dev', 'proc', 'tmp', 'etc', 'opt/firecrew/bin', 'home/agent', 'run/firecrew']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  const system = LINKED.filter((path) => existsSync(path)).flatMap((path) => {
    if (!lstatSync(path).isSymbolicLink()) return ['--ro-bind', path, path];
    // An earlier boot of the same disk has made it.
    return lstatSync(join(root, path), { throwIfNoEntry: false }) === undefined ? ['--symlink', readlinkSync(path), path] : [];
  });
  return [
    ...[
      '--unshare-user',
      '--unshare-all',
      '--die-with-parent',
      '--new-session',
      '--uid',
      '1000',
      '--gid',
      '1000',
      '--hostname',
      'firecrew',
    ],
    ...['--bind', root, '/', '--ro-bind', '/usr', '/usr', ...system, '--ro-bind-try', '/etc/alternatives', '/etc/alternatives'],
    ...['--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
    ...[
      '--ro-bind',
      node,
      AGENT.node,
      '--ro-bind',
      agentBundle,
      AGENT.bundle,
      '--chdir',
      '/',
      '--clearenv',
      '--setenv',
      'PATH',
      '/usr/bin:/bin',
    ],
    ...['--', AGENT.node, '--max-semi-space-size=1', AGENT.bundle, '--config-file', AGENT.config],
  ];
}
