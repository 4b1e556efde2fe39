/** Largest payload of one frame, in bytes. */
export const MAX_FRAME_BYTES = 65_536;
/** Credit of one direction of one stream, in bytes: what a sender may have sent that the reader has not taken. */
export const STREAM_WINDOW_BYTES = 262_144;
/** A reader returns credit when this many bytes were taken since the last grant. */
export const GRANT_THRESHOLD_BYTES = STREAM_WINDOW_BYTES / 2;
/** Largest JSON head of a stream, in bytes of UTF-8. It travels in one frame. */
export const MAX_HEAD_BYTES = MAX_FRAME_BYTES;
/** Streams that one side may have open at a time; each side has its own count. */
export const MAX_STREAMS = 1_024;
/** Highest stream id; after it a session opens no more streams. */
export const MAX_STREAM_ID = 0xffff_ffff;
/** Longest code in RST and GOAWAY, in ASCII characters. */
export const MAX_CODE_BYTES = 64;
/** Time for a whole preamble to arrive, and for the dialler's answer, in milliseconds. */
export const PREAMBLE_TIMEOUT_MS = 10_000;
/** Bytes of an earlier session that a receiver throws away while it looks for a preamble or an answer. */
export const MAX_STALE_BYTES = 4_194_304;
/** Time for the head that answers an opened stream, in milliseconds. */
export const HEAD_TIMEOUT_MS = 30_000;
/** A PING goes out when no whole frame came for this long, in milliseconds. */
export const KEEPALIVE_INTERVAL_MS = 10_000;
/** Intervals in a row without a whole frame, each with a PING sent, after which the peer is dead. */
export const KEEPALIVE_MISSES = 3;
/** Data frames wait while this many bytes are unsent on the underlying stream. */
export const SEND_BUFFER_BYTES = 262_144;
/** A session ends when answers to a peer that does not read take this many bytes on the underlying stream. */
export const MAX_SEND_BUFFER_BYTES = 1_048_576;
/** Unauthenticated streams a listener holds; a further one pushes the oldest out. */
export const MAX_PENDING_STREAMS = 8;
/** Time for the last frames to leave before the underlying stream is destroyed, in milliseconds. */
export const CLOSE_TIMEOUT_MS = 2_000;
/** Length of the shared secret, in bytes. */
export const SECRET_BYTES = 32;
/** Longest Unix socket path on Linux, in bytes, without the closing NUL. */
export const MAX_SOCKET_PATH_BYTES = 107;

/** Limits a caller may lower (or raise in a test); each default is the constant of the same name. */
export interface LinkLimits {
  readonly maxStreams?: number;
  readonly headTimeoutMs?: number;
  readonly preambleTimeoutMs?: number;
  readonly maxStaleBytes?: number;
  readonly keepAliveIntervalMs?: number;
}

/** `limits` with every default filled in. */
export function fillLimits(limits: LinkLimits): Required<LinkLimits> {
  return {
    maxStreams: limits.maxStreams ?? MAX_STREAMS,
    headTimeoutMs: limits.headTimeoutMs ?? HEAD_TIMEOUT_MS,
    preambleTimeoutMs: limits.preambleTimeoutMs ?? PREAMBLE_TIMEOUT_MS,
    maxStaleBytes: limits.maxStaleBytes ?? MAX_STALE_BYTES,
    keepAliveIntervalMs: limits.keepAliveIntervalMs ?? KEEPALIVE_INTERVAL_MS,
  };
}
