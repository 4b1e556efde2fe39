import { expect, it } from 'vitest';
import * as link from '../src/index.ts';

it('exports these names and no others', () => {
  expect(Object.keys(link).sort()).toMatchInlineSnapshot(`
    [
      "CLOSE_TIMEOUT_MS",
      "GRANT_THRESHOLD_BYTES",
      "HEAD_TIMEOUT_MS",
      "KEEPALIVE_INTERVAL_MS",
      "KEEPALIVE_MISSES",
      "LINK_END_CODES",
      "LinkListener",
      "LinkSession",
      "LinkStream",
      "MAX_CODE_BYTES",
      "MAX_FRAME_BYTES",
      "MAX_HEAD_BYTES",
      "MAX_PENDING_STREAMS",
      "MAX_SEND_BUFFER_BYTES",
      "MAX_SOCKET_PATH_BYTES",
      "MAX_STALE_BYTES",
      "MAX_STREAMS",
      "MAX_STREAM_ID",
      "PREAMBLE_TIMEOUT_MS",
      "REFUSAL_REASONS",
      "SECRET_BYTES",
      "SEND_BUFFER_BYTES",
      "STREAM_WINDOW_BYTES",
      "StreamResetError",
      "VIOLATION_CODES",
      "checkSocketPath",
      "dialLink",
    ]
  `);
});

it('has these limits', () => {
  const numbers = Object.fromEntries(Object.entries(link).filter(([, value]) => typeof value === 'number'));
  expect(numbers).toMatchInlineSnapshot(`
    {
      "CLOSE_TIMEOUT_MS": 2000,
      "GRANT_THRESHOLD_BYTES": 131072,
      "HEAD_TIMEOUT_MS": 30000,
      "KEEPALIVE_INTERVAL_MS": 10000,
      "KEEPALIVE_MISSES": 3,
      "MAX_CODE_BYTES": 64,
      "MAX_FRAME_BYTES": 65536,
      "MAX_HEAD_BYTES": 65536,
      "MAX_PENDING_STREAMS": 8,
      "MAX_SEND_BUFFER_BYTES": 1048576,
      "MAX_SOCKET_PATH_BYTES": 107,
      "MAX_STALE_BYTES": 4194304,
      "MAX_STREAMS": 1024,
      "MAX_STREAM_ID": 4294967295,
      "PREAMBLE_TIMEOUT_MS": 10000,
      "SECRET_BYTES": 32,
      "SEND_BUFFER_BYTES": 262144,
      "STREAM_WINDOW_BYTES": 262144,
    }
  `);
});

it('has these codes', () => {
  expect({ end: link.LINK_END_CODES, refusal: link.REFUSAL_REASONS }).toMatchInlineSnapshot(`
    {
      "end": [
        "closed",
        "peer_closed",
        "link_lost",
        "link_replaced",
        "peer_silent",
        "peer_restarted",
        "internal_error",
        "unknown_frame_type",
        "frame_too_large",
        "bad_frame_length",
        "bad_stream_id",
        "stream_never_opened",
        "window_exceeded",
        "credit_overflow",
        "bad_head",
        "head_order",
        "data_after_fin",
        "bad_code",
        "unexpected_pong",
        "peer_stalled",
      ],
      "refusal": [
        "wrong_secret",
        "generation_mismatch",
        "preamble_timeout",
        "preamble_not_found",
        "preamble_cut",
        "too_many_pending",
        "listener_closed",
      ],
    }
  `);
});
