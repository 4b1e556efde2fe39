/** Execs that run at a time, and that are remembered, in one VM. */
export const MAX_RUNNING_EXECS = 64;
export const MAX_EXECS = 1024;
/** After its leader's end an exec is drained until its output was quiet for this long, in `ms`, and at most for the second. */
export const DRAIN_QUIET_MS = 250;
export const DRAIN_MAX_MS = 5000;
/** Time for the last bytes after the survivors were killed, in `ms`. */
export const LAST_BYTES_MS = 1000;
/** From SIGTERM at the time limit to SIGKILL, in `ms`. */
export const KILL_GRACE_MS = 5000;
/** From SIGKILL to the end of waiting for the leader, in `ms`: one in an uninterruptible call may stay. */
export const KILL_WAIT_MS = 10_000;
/** Time for a killed group to be empty, and pause between two looks, in `ms`. */
export const GROUP_EMPTY_MS = 2000;
export const GROUP_PAUSE_MS = 5;
/** Bytes read from an output file at a time. */
export const FOLLOW_CHUNK_BYTES = 64 * 1024;
/** Time for `mkfifo`, in `ms`. */
export const FIFO_TIMEOUT_MS = 2000;
