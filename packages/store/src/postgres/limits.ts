/** Longest path of a Unix socket in bytes, without its final NUL (`sun_path` of Linux holds 108). */
export const SOCKET_PATH_MAX_BYTES = 107;
/** How long a new server may take until it accepts connections; covers crash recovery of `max_wal_size`. */
export const READY_TIMEOUT_MS = 120_000;
/** How long a fast shutdown may take before the server is told to stop at once. */
export const STOP_FAST_MS = 10_000;
/** How long an orphan of an earlier supervisor may take for a fast shutdown before it is told to stop at once. */
export const ORPHAN_FAST_MS = 5_000;
/** How long a server told to stop at once may take before its processes are killed. */
export const STOP_IMMEDIATE_MS = 5_000;
/** How long a start is tried again while processes of a killed server still hold its shared memory. */
export const SHARED_MEMORY_RETRY_MS = 2_000;
/** How long the `initdb` of a killed supervisor may go on before it is killed. */
export const INITDB_ORPHAN_MS = 10_000;
/** The server's log is moved aside at a start when it is larger than this. */
export const LOG_MAX_BYTES = 16 * 1024 * 1024;
/** How much of the end of the server's log an error message may quote. */
export const LOG_TAIL_BYTES = 2_048;
/** Pause between two looks at a condition of another process. */
export const POLL_MS = 20;
