import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { LOG_MAX_BYTES, LOG_TAIL_BYTES } from './limits.ts';

/** The server's own log, a file beside the data: a pipe to the supervisor would break when the supervisor dies first. */
export interface ServerLog {
  readonly path: string;
  readonly fd: number;
  /** The end of what was written since the log was opened. */
  tail(): string;
  close(): void;
}

/** Opens `path` for appending; one larger than `LOG_MAX_BYTES` is moved to `path.1` first. */
export function openServerLog(path: string): ServerLog {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_MAX_BYTES) renameSync(path, `${path}.1`);
  const fd = openSync(path, 'a+', 0o600);
  const begin = fstatSync(fd).size;
  let open = true;
  return {
    path,
    fd,
    tail: () => {
      const end = fstatSync(fd).size;
      const from = Math.max(begin, end - LOG_TAIL_BYTES);
      const bytes = Buffer.alloc(end - from);
      return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, from));
    },
    close: () => {
      if (open) closeSync(fd);
      open = false;
    },
  };
}
