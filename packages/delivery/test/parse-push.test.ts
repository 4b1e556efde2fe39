import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PUSH_DETAIL_MAX_CHARS, PUSH_OUTPUT_MAX_BYTES, parsePush } from '../src/index.ts';

const REF = 'refs/heads/firecrew/x-12345678';
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const output = (flag: string, summary: string): Uint8Array => bytes(`To https://forge/x\n${flag}\t${REF}:${REF}\t${summary}\nDone\n`);

describe('the status of a push', () => {
  it.each([
    ['*', '[new branch]', 0, 'pushed', 'new_branch'],
    [' ', 'aaaaaaa..bbbbbbb', 0, 'pushed', 'fast_forward'],
    ['=', '[up to date]', 0, 'up_to_date', 'same_commit'],
    ['!', '[rejected] (fetch first)', 1, 'diverged', 'non_fast_forward'],
    ['!', '[rejected] (non-fast-forward)', 1, 'diverged', 'non_fast_forward'],
    ['!', '[rejected] (stale info)', 1, 'refused', 'stale_info'],
    ['!', '[remote rejected] (protected branch hook declined)', 1, 'refused', 'remote_rejected'],
    ['!', '[remote rejected] (pre-receive hook declined)', 1, 'refused', 'remote_rejected'],
    ['!', '[remote rejected] (fetch first)', 1, 'refused', 'remote_rejected'],
    ['!', '[remote rejected] (shallow update not allowed)', 1, 'refused', 'remote_rejected'],
    ['!', '[remote failure]', 1, 'refused', 'remote_failure'],
    ['!', '[no match]', 1, 'refused', 'no_match'],
    ['!', 'something else (rejected)', 1, 'unreadable', 'contradiction'],
    ['+', 'aaa...bbb (forced update)', 0, 'refused', 'forced_update'],
    ['-', '[deleted]', 0, 'unreadable', 'contradiction'],
    ['*', '[new branch]', 1, 'unreadable', 'contradiction'],
  ])('reads %j %j with exit code %d as %s, %s', (flag, summary, exitCode, verdict, reason) => {
    expect(parsePush(output(flag, summary), REF, exitCode)).toEqual({ verdict, reason, detail: summary });
  });

  it.each([
    ['nothing', ''],
    ['another ref', `To x\n*\trefs/heads/y:refs/heads/y\t[new branch]\nDone\n`],
    ['prose about our ref', `error: failed to push ${REF} [rejected] (fetch first)\n`],
    ['a ref that ours is the head of', `!\t${REF}:${REF}x\t[rejected] (fetch first)\n`],
  ])('is unreadable for %s', (_name, text) => {
    expect(parsePush(bytes(text), REF, 1)).toEqual({ verdict: 'unreadable', reason: 'no_status', detail: '' });
  });

  it('counts the worst of several remotes', () => {
    const two = bytes(`To a\n*\t${REF}:${REF}\t[new branch]\nDone\nTo b\n!\t${REF}:${REF}\t[remote rejected] (no)\nDone\n`);
    expect(parsePush(two, REF, 1).verdict).toBe('refused');
  });

  it('finds the ref when the source is a commit id', () => {
    expect(parsePush(bytes(`*\t${'a'.repeat(40)}:${REF}\t[new branch]\n`), REF, 0).verdict).toBe('pushed');
  });

  it('keeps both ends of a long detail and refuses output past its limit', () => {
    const long = parsePush(output('!', `[remote rejected] (${'x'.repeat(5000)}end)`), REF, 1);
    expect(long.detail.length).toBe(PUSH_DETAIL_MAX_CHARS);
    expect(long.detail.startsWith('[remote rejected] (x')).toBe(true);
    expect(long.detail.endsWith('xend)')).toBe(true);
    expect(parsePush(new Uint8Array(PUSH_OUTPUT_MAX_BYTES + 1), REF, 0).reason).toBe('too_long');
    expect(parsePush(new Uint8Array(PUSH_OUTPUT_MAX_BYTES), REF, 0).reason).toBe('no_status');
  });

  it('throws for no bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.integer(), (noise, exitCode) => {
        expect(parsePush(noise, REF, exitCode).verdict).toBe('unreadable');
      }),
    );
  });
});
