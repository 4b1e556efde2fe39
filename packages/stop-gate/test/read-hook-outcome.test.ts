import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOOK_LOG_MAX_BYTES, type HookVerdict, readHookOutcome } from '../src/index.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const block = '{"event":"block","blocks":1,"reason":"check_failed","exit":3}\n';

describe("what the guest's hook reports", () => {
  it('counts refusals and passes, with the last reason and status', () => {
    const log = bytes(`${block}${block}{"event":"pass","blocks":2,"reason":"none","exit":0}\n`);
    expect(readHookOutcome({ log, capped: false })).toEqual({
      verdict: 'passed',
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

  const pass = '{"event":"pass","blocks":2,"reason":"none","exit":0}\n';
  const cap = '{"event":"cap","blocks":3,"reason":"check_failed","exit":1}\n';
  it.each<[HookVerdict, string, Uint8Array | 'unreadable' | undefined, boolean | 'unreadable']>([
    ['passed', 'a last line that passes', bytes(pass), false],
    ['passed', 'a pass after refusals', bytes(block + block + block + pass), false],
    ['blocked', 'a last line that refuses', bytes(block + block), false],
    ['blocked', 'a refusal after a pass', bytes(pass + block), false],
    ['capped', 'the mark', bytes(block + block + block + cap), true],
    ['capped', 'the mark beside a log that passes', bytes(pass), true],
    ['capped', 'the mark alone', undefined, true],
    ['capped', 'the mark beside an unreadable log', 'unreadable', true],
    ['not_called', 'no log', undefined, false],
    ['not_called', 'an empty log', bytes('\n'), false],
    ['unreadable', 'an unreadable log', 'unreadable', false],
    ['unreadable', 'no log and an unreadable mark', undefined, 'unreadable'],
    ['unreadable', 'a log that passes and an unreadable mark', bytes(pass), 'unreadable'],
    ['unreadable', 'a log that gives up without the mark', bytes(cap), false],
    ['unreadable', 'a torn last line', bytes(block + pass.slice(0, 20)), false],
    ['unreadable', 'a last line of other text', bytes(`${pass}passed`), false],
    ['unreadable', 'a log that was not read to its end', bytes(pass.repeat(Math.ceil(HOOK_LOG_MAX_BYTES / pass.length) + 1)), false],
  ])('is %s for %s', (verdict, _what, log, capped) => {
    expect(readHookOutcome({ log, capped }).verdict).toBe(verdict);
  });

  it('is never a pass unless the last line says so and the mark is known not to be there', () => {
    const lines = fc.array(fc.oneof(fc.constantFrom(block, pass, cap, 'pass\n', '{"event":"pass"', '\n'), fc.string()), { maxLength: 6 });
    fc.assert(
      fc.property(lines, fc.constantFrom(true, false, 'unreadable' as const), (all, capped) => {
        const text = all.join('');
        const { verdict } = readHookOutcome({ log: bytes(text), capped });
        const last = text.split('\n').findLast((line) => line.trim() !== '') ?? '';
        const passes = capped === false && last.includes('"event":"pass"') && last.trim().endsWith('}');
        return verdict !== 'passed' || passes;
      }),
    );
  });

  it('reads no more than its limit', () => {
    const log = bytes(block.repeat(Math.ceil(HOOK_LOG_MAX_BYTES / block.length) + 5));
    expect(readHookOutcome({ log, capped: false })).toMatchObject({
      truncated: true,
      blocks: Math.floor(HOOK_LOG_MAX_BYTES / block.length),
    });
  });
});
