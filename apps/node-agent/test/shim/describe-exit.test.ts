import { describe, expect, it } from 'vitest';
import { describeExit, MAX_EXIT_CHARS } from '../../src/shim/describe-exit.ts';

describe('how a VM ended', () => {
  it.each([
    [{ code: 0, signal: null, detail: 'guest_poweroff' }, 'guest_poweroff'],
    [{ code: 1, signal: null, detail: 'guest_panic; its console: a\n\u001b[31mb' }, 'guest_panic; its console: a [31mb'],
    [{ code: null, signal: 'SIGKILL' }, 'SIGKILL'],
    [{ code: 3, signal: null }, 'exit 3'],
    [{ code: null, signal: null }, 'exit unknown'],
  ])('%j', (exit, words) => {
    expect(describeExit(exit)).toBe(words);
  });

  it('has bounded words, whatever the guest wrote on its console', () => {
    expect(describeExit({ code: 0, signal: null, detail: 'x'.repeat(100_000) })).toHaveLength(MAX_EXIT_CHARS);
  });
});
