import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CgroupPlaces } from '../cgroup/vm-groups.ts';

/** Files of a group that this program writes. */
const GROUP_FILES = ['cgroup.procs', 'cgroup.kill', 'memory.max', 'memory.swap.max', 'cpu.max', 'pids.max'];

/** What a folder that stands for cgroup v2 has, and lacks. */
export interface CgroupStandInOptions {
  readonly controllers?: string;
  /** Path of the own group in `/proc/self/cgroup`; default the root. */
  readonly own?: string;
  /** Files that groups come without. */
  readonly lacking?: readonly string[];
}

/** A folder that stands for a mounted cgroup v2: groups come with their files and go with them, and limit nothing. */
export async function cgroupStandIn(folder: string, options: CgroupStandInOptions = {}): Promise<CgroupPlaces & { readonly root: string }> {
  const root = join(folder, 'root');
  const [mountsFile, ownFile] = [join(folder, 'mounts'), join(folder, 'own')];
  const { controllers = 'cpuset cpu io memory pids', own = '/', lacking = [] } = options;
  const fill = async (group: string): Promise<void> => {
    await writeFile(join(group, 'cgroup.controllers'), `${controllers}\n`);
    await writeFile(join(group, 'cgroup.subtree_control'), '');
  };
  await mkdir(join(root, own), { recursive: true });
  await fill(root);
  await fill(join(root, own));
  await writeFile(
    mountsFile,
    `24 30 0:22 / /proc rw,nosuid - proc proc rw\n42 30 0:39 / ${root} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n`,
  );
  await writeFile(ownFile, `0::${own}\n`);
  return {
    root,
    mountsFile,
    ownFile,
    make: async (group) => {
      await mkdir(group);
      await fill(group);
      for (const name of GROUP_FILES) if (!lacking.includes(name)) await writeFile(join(group, name), '');
    },
    remove: async (group) => {
      await rm(group, { recursive: true, force: true });
      return true;
    },
  };
}
