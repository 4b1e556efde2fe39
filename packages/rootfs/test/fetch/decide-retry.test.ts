import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decideRetry,
  FETCH_ABSENT_MS,
  FETCH_PAUSE_MAX_MS,
  FETCH_PAUSE_MIN_MS,
  FETCH_PROGRESS_BYTES,
  FETCH_REST_MS,
  type FetchState,
  faultOf,
  MAX_FETCH_TRIES,
  NOT_TRIED,
} from '../../src/index.ts';

const now = { nowMs: 1_000_000, random: 0 };
const broken = { fault: 'broken' as const, newBytes: 0, ...now };
const refused = { fault: 'refused' as const, newBytes: 0, ...now };

/** The pauses after `count` failed tries of one kind, in a row; null where none follows. */
function pausesOf(failed: typeof broken | typeof refused, count: number): (number | null)[] {
  const pauses: (number | null)[] = [];
  let state: FetchState = NOT_TRIED;
  for (let at = 0; at < count; at += 1) {
    state = decideRetry(state, failed);
    pauses.push(state.dueMs === null ? null : state.dueMs - failed.nowMs);
  }
  return pauses;
}

describe('a fetch that failed', () => {
  it('has limits that are pinned', () => {
    const limits = [MAX_FETCH_TRIES, FETCH_PAUSE_MIN_MS, FETCH_PAUSE_MAX_MS, FETCH_REST_MS, FETCH_ABSENT_MS, FETCH_PROGRESS_BYTES];
    expect(limits).toEqual([8, 1_000, 60_000, 600_000, 60_000, 1_048_576]);
  });

  it('is tried again after growing pauses, and rests after a series that brought nothing', () => {
    expect(pausesOf(broken, 9)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 600_000, 500]);
  });

  it('is not tried again after a series of what the server must not send, before the link is new', () => {
    expect(pausesOf(refused, 8)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, null]);
  });

  it('begins its series anew when it brought something', () => {
    const state = { failures: 6, refusals: 0, dueMs: 0 };
    expect(decideRetry(state, { ...broken, newBytes: FETCH_PROGRESS_BYTES })).toMatchObject({ failures: 1 });
    expect(decideRetry(state, { ...broken, newBytes: FETCH_PROGRESS_BYTES - 1 })).toMatchObject({ failures: 7 });
  });

  it('ends also where a server sends something, breaks, and then sends the wrong thing, again and again', () => {
    let state: FetchState = NOT_TRIED;
    let tries = 0;
    for (; state.dueMs !== null && tries < 100; tries += 1)
      state = decideRetry(decideRetry(state, { ...broken, newBytes: FETCH_PROGRESS_BYTES }), refused);
    expect(tries).toBe(MAX_FETCH_TRIES);
  });

  it('asks at a steady pace for what the server does not have, and forgets no refusal over it', () => {
    const state = { failures: 3, refusals: 4, dueMs: 0 };
    expect(decideRetry(state, { ...broken, fault: 'absent' })).toEqual({ failures: 0, refusals: 4, dueMs: now.nowMs + FETCH_ABSENT_MS });
  });

  it('is never due at once, and nodes that failed together are not due together', () => {
    fc.assert(
      fc.property(fc.nat(20), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, random) => {
        const { dueMs } = decideRetry({ failures, refusals: 0, dueMs: 0 }, { ...broken, random });
        expect((dueMs ?? 0) - now.nowMs).toBeGreaterThanOrEqual(FETCH_PAUSE_MIN_MS / 2);
      }),
    );
    expect(decideRetry(NOT_TRIED, { ...broken, random: 0.9 }).dueMs).not.toBe(decideRetry(NOT_TRIED, broken).dueMs);
  });

  it.each([
    ['image_not_offered', 'absent'],
    ['image_digest_wrong', 'refused'],
    ['manifest_malformed', 'refused'],
    ['image_kind_wrong', 'refused'],
    ['image_architecture_wrong', 'refused'],
    ['image_length_wrong', 'refused'],
    ['image_answer_wrong', 'refused'],
    ['image_redirected', 'refused'],
    ['image_cut', 'broken'],
    ['image_transfer_broken', 'broken'],
    ['image_no_room', 'broken'],
    ['image_store_failed', 'broken'],
    ['server_unknown', 'broken'],
    [undefined, 'broken'],
  ])('with %s is %s', (code, fault) => {
    expect(faultOf(code)).toBe(fault);
  });
});
