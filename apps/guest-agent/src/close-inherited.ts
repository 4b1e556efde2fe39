import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { codeOf } from '@firecrew/base';

/** Flag of a descriptor that does not pass to a started program, as `/proc` shows it. */
const CLOSE_ON_EXEC = 0o2000000;
const STANDARD = 3;

/**
 * Closes every descriptor that came from whoever started this process, but for the standard ones and `kept`: an exec would inherit
 * them, and one may lead to the host. Node's own are all closed on exec. Gives the numbers that were closed.
 */
export function closeInherited(kept?: number): number[] {
  const closed: number[] = [];
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    if (fd < STANDARD || fd === kept || isClosedOnExec(fd)) continue;
    try {
      closeSync(fd);
      closed.push(fd);
    } catch (error) {
      if (codeOf(error) !== 'EBADF') throw error;
    }
  }
  return closed;
}

function isClosedOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags === undefined || (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
  } catch {
    // The listing's own descriptor is gone by now.
    return true;
  }
}
