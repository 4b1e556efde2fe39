import { describe, expect, it } from 'vitest';
import { HOOK_LOG_MAX_BYTES, readHookOutcome } from '../src/index.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const block = '{"event":"block","blocks":1,"reason":"check_failed","exit":3}\n';

describe("what the guest's hook reports", () => {
  it('counts refusals and passes, with the last reason and status', () => {
    const log = bytes(`${block}${block}{"event":"pass","blocks":2,"reason":"none","exit":0}\n`);
    expect(readHookOutcome({ log, capped: false })).toEqual({
      log: 'read',
      blocks: 2,
      passes: 1,
      capped: false,
      lastReason: 'check_failed',
      lastExit: 3,
      skippedLines: 0,
      truncated: false,
    });
  });

  it('takes giving up from the mark alone, never from words in the log', () => {
    const log = bytes('{"event":"block","reason":"capped cap","exit":1}\ncap cap cap\n');
    expect(readHookOutcome({ log, capped: false })).toMatchObject({ capped: false, blocks: 0, skippedLines: 2 });
    expect(readHookOutcome({ log: undefined, capped: true })).toMatchObject({ log: 'absent', capped: true });
  });

  it('tells absent, empty and read apart', () => {
    expect(readHookOutcome({ log: undefined, capped: false }).log).toBe('absent');
    expect(readHookOutcome({ log: bytes(''), capped: false }).log).toBe('empty');
  });

  it('reads no more than its limit', () => {
    const log = bytes(block.repeat(Math.ceil(HOOK_LOG_MAX_BYTES / block.length) + 5));
    expect(readHookOutcome({ log, capped: false })).toMatchObject({
      truncated: true,
      blocks: Math.floor(HOOK_LOG_MAX_BYTES / block.length),
    });
  });
});
