import { posix } from 'node:path';

/** Name of a group that holds the services themselves, so that the group above it may hold limited ones. */
export const SERVICES_GROUP = 'firecrew-services';

/** What is known of cgroup v2 on this host. */
export interface CgroupFacts {
  /** Text of `/proc/self/mountinfo`. */
  readonly mounts: string;
  /** Text of `/proc/self/cgroup`. */
  readonly own: string;
  /** Group that the settings name, below the root of cgroup v2; undefined for the own one. */
  readonly named: string | undefined;
}

/** The folder below which VMs get their groups, or why there is none. */
export type ParentChoice = { readonly folder: string } | { readonly why: string };

/**
 * Which group is the parent of those of VMs: the named one, else this process's own. A group with processes in it can have no limited
 * ones below it, so one that is named `firecrew-services` stands for the group above.
 */
export function chooseParent({ mounts, own, named }: CgroupFacts): ParentChoice {
  const mount = cgroup2Mount(mounts);
  if (mount === undefined) return { why: 'cgroup v2 is not mounted here' };
  if (named !== undefined) return { folder: posix.join(mount.point, named) };
  const path = /^0::(\/.*)$/m.exec(own)?.[1];
  const below = path === undefined ? undefined : posix.relative(mount.root, path);
  if (below === undefined || below.startsWith('..'))
    return { why: 'the own group of this process is not below the mounted root of cgroup v2' };
  const folder = posix.join(mount.point, below);
  return { folder: posix.basename(folder) === SERVICES_GROUP ? posix.dirname(folder) : folder };
}

interface Mount {
  readonly root: string;
  readonly point: string;
}

/** Fields of a line: id, parent, device, root, mount point, options, optional fields, a hyphen, type, source, options. */
function cgroup2Mount(mounts: string): Mount | undefined {
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root, point] = before.split(' ');
    if (after.split(' ')[0] === 'cgroup2' && root !== undefined && point !== undefined)
      return { root: unescaped(root), point: unescaped(point) };
  }
  return undefined;
}

/** Blanks and the like are written in octal there. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_match, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
