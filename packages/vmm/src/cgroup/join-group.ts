import { join } from 'node:path';

/** Joins the group whose file is the first argument, and becomes the program that follows. The builtin writes, so it is the shell that joins. */
const JOIN = 'echo 0 > "$0" && exec "$@"';

/**
 * Start of a command line that joins a group of cgroup v2 and then becomes the program that follows: that is in the group from its first
 * instruction, and is never started where joining fails.
 */
export function joinGroup(group: string): string[] {
  return ['/bin/sh', '-c', JOIN, join(group, 'cgroup.procs')];
}
