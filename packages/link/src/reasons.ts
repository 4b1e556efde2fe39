import { CodedError } from '@firecrew/base';

/** Breaches of the format. Each ends the session, and is told to the peer in GOAWAY. */
export const VIOLATION_CODES = [
  'unknown_frame_type',
  'frame_too_large',
  'bad_frame_length',
  'bad_stream_id',
  'stream_never_opened',
  'window_exceeded',
  'credit_overflow',
  'bad_head',
  'head_order',
  'data_after_fin',
  'bad_code',
  'unexpected_pong',
  'peer_stalled',
] as const;
export type ViolationCode = (typeof VIOLATION_CODES)[number];

/** Why a session ended: the closed list. */
export const LINK_END_CODES = [
  'closed',
  'peer_closed',
  'link_lost',
  'link_replaced',
  'peer_silent',
  'peer_restarted',
  'internal_error',
  ...VIOLATION_CODES,
] as const;
export type LinkEndCode = (typeof LINK_END_CODES)[number];

/** How a session ended. `peerCode` is the code of the peer's GOAWAY, there with `peer_closed` alone. */
export interface LinkEnd {
  readonly code: LinkEndCode;
  readonly message: string;
  readonly peerCode?: string;
}

/** Why a listener refused a stream: the closed list. */
export const REFUSAL_REASONS = [
  'wrong_secret',
  'generation_mismatch',
  'preamble_timeout',
  'preamble_not_found',
  'preamble_cut',
  'too_many_pending',
  'listener_closed',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** What a listener reports about a refused stream. */
export interface LinkRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
}

/** A breach of the format by the peer. */
export class ProtocolViolation extends CodedError {
  declare readonly code: ViolationCode;

  constructor(code: ViolationCode, message: string) {
    super(code, message);
    this.name = 'ProtocolViolation';
  }
}

/** The error of a stream that one side reset; `resetCode` is the code that travelled. */
export class StreamResetError extends CodedError {
  readonly resetCode: string;
  readonly by: 'peer' | 'local';

  constructor(resetCode: string, by: 'peer' | 'local', id: number | undefined) {
    super(
      'stream_reset',
      `Link stream ${id ?? '(not yet sent)'} was reset ${by === 'peer' ? 'by the peer' : 'on this side'}: ${resetCode}.`,
    );
    this.name = 'StreamResetError';
    this.resetCode = resetCode;
    this.by = by;
  }
}

/** The error that every open stream gets when its session ends: `link_closed`, `link_replaced`, else `link_lost`. */
export function streamErrorOf(end: LinkEnd): CodedError {
  if (end.code === 'closed' || end.code === 'peer_closed') return new CodedError('link_closed', end.message);
  if (end.code === 'link_replaced') return new CodedError('link_replaced', end.message);
  return new CodedError('link_lost', end.message, { action: 'Dial again; work that outlives the link is resumed by its id and offset.' });
}
