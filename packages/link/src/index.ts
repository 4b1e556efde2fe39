export { checkSocketPath } from './check-socket-path.ts';
export type { LinkClock } from './clock.ts';
export { type DialOptions, dialLink } from './dial-link.ts';
export {
  CLOSE_TIMEOUT_MS,
  GRANT_THRESHOLD_BYTES,
  HEAD_TIMEOUT_MS,
  KEEPALIVE_INTERVAL_MS,
  KEEPALIVE_MISSES,
  type LinkLimits,
  MAX_CODE_BYTES,
  MAX_FRAME_BYTES,
  MAX_HEAD_BYTES,
  MAX_PENDING_STREAMS,
  MAX_SEND_BUFFER_BYTES,
  MAX_SOCKET_PATH_BYTES,
  MAX_STALE_BYTES,
  MAX_STREAM_ID,
  MAX_STREAMS,
  PREAMBLE_TIMEOUT_MS,
  SECRET_BYTES,
  SEND_BUFFER_BYTES,
  STREAM_WINDOW_BYTES,
} from './limits.ts';
export { LinkListener, type ListenerOptions } from './link-listener.ts';
export { LinkSession } from './link-session.ts';
export { LinkStream } from './link-stream.ts';
export {
  LINK_END_CODES,
  type LinkEnd,
  type LinkEndCode,
  type LinkRefusal,
  REFUSAL_REASONS,
  type RefusalReason,
  StreamResetError,
  VIOLATION_CODES,
  type ViolationCode,
} from './reasons.ts';
export type { OnStream, SessionOptions } from './session-options.ts';
