/** Frame types by their byte on the wire. */
export const FRAME_TYPE = { open: 1, head: 2, data: 3, fin: 4, rst: 5, window: 6, ping: 7, pong: 8, goaway: 9 } as const;

/** Bytes of a frame header: type u8, stream u32, length u32, big-endian. */
export const FRAME_HEADER_BYTES = 9;
/** Bytes of a WINDOW payload. */
export const WINDOW_PAYLOAD_BYTES = 4;
/** Bytes of a PING or PONG payload. */
export const PING_PAYLOAD_BYTES = 8;

/**
 * Never a frame type. At a frame boundary it says that the peer has begun again on a stream without connections; as padding it
 * completes a frame that an earlier process left half sent.
 */
export const RESYNC_BYTE = 0xff;

/** Every frame but DATA, whose payload is passed on in parts. */
export type Frame =
  | { readonly type: 'open' | 'head'; readonly stream: number; readonly payload: Uint8Array }
  | { readonly type: 'fin'; readonly stream: number }
  | { readonly type: 'rst'; readonly stream: number; readonly code: string }
  | { readonly type: 'window'; readonly stream: number; readonly credit: number }
  | { readonly type: 'ping' | 'pong'; readonly token: bigint }
  | { readonly type: 'goaway'; readonly code: string };

/** Form of the codes in RST and GOAWAY: snake_case, at most 64 characters. */
const CODE = /^[a-z][a-z0-9_]{0,63}$/;

/** Whether `code` may travel in RST or GOAWAY. */
export function isWireCode(code: string): boolean {
  return CODE.test(code);
}
