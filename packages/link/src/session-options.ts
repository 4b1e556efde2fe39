import type { LinkClock } from './clock.ts';
import type { LinkLimits } from './limits.ts';
import type { LinkSession } from './link-session.ts';
import type { LinkStream } from './link-stream.ts';

/**
 * Called for each stream the peer opens, with the peer's head as it came (parse it strictly). It calls `stream.reply` once,
 * before it writes. When it throws or rejects, the stream is reset with `handler_failed`.
 */
export type OnStream = (stream: LinkStream, head: unknown, session: LinkSession) => unknown;

/** What both ends give a session. */
export interface SessionOptions extends LinkLimits {
  readonly onStream: OnStream;
  readonly clock?: LinkClock;
}

/** What a handshake found out. */
export interface SessionIdentity {
  /** The dialler opens odd stream ids, the listener even ones. */
  readonly side: 'dialler' | 'listener';
  /** 16 hex digits, made by the dialler. */
  readonly epoch: string;
  readonly generation: number;
}
