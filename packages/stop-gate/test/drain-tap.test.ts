import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drainTap, parseToolUse, TAP_MAX_BYTES } from '../src/index.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = '{"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"/repo/src/a.ts"}}';
const shell = '{"hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_input":{"command":"cat /repo/secret.txt"}}';

describe('the tool tap', () => {
  it('reads two events with blank lines between as 2 records and 4 lines, and nothing the second time', () => {
    const file = bytes(`${read}\n\n${shell}\n\n`);
    const first = drainTap(file, 0, { root: '/repo' });
    expect(first).toMatchObject({ status: 'read', lines: 4, skippedLines: 0, cursor: file.length });
    expect(first.records).toEqual([
      { tool: 'Read', path: 'src/a.ts', failed: false },
      { tool: 'Bash', failed: true },
    ]);
    expect(drainTap(file, first.cursor)).toMatchObject({ status: 'empty', records: [], cursor: file.length });
  });

  it('leaves a torn last line for the next drain', () => {
    const file = bytes(`${read}\n${shell}\n`);
    const torn = file.subarray(0, file.length - 20);
    const first = drainTap(torn, 0);
    expect(first.records).toHaveLength(1);
    expect(drainTap(file, first.cursor).records).toEqual([{ tool: 'Bash', failed: true }]);
  });

  it('reads the torn line at the final drain, at the cost of that line alone', () => {
    expect(drainTap(bytes(`${read}\n{"tool_na`), 0, { final: true })).toMatchObject({
      lines: 2,
      skippedLines: 1,
      records: [{ tool: 'Read' }],
    });
  });

  it('tells an absent file from an empty one', () => {
    expect(drainTap(undefined, 0).status).toBe('absent');
    expect(drainTap(bytes(''), 0).status).toBe('empty');
  });

  it.each([
    ['{"hook_event_name":"SessionStart","source":"startup"}', undefined],
    ['{"hook_event_name":"Stop","tool_name":"Read"}', undefined],
    ['{"hook_event_name":"PostToolUse","tool_name":"  "}', undefined],
    ['{"hook_event_name":"PostToolUse"}', undefined],
    ['[]', undefined],
    ['null', undefined],
    ['nonsense', undefined],
    ['{"toolName":"edit","toolInput":{"filePath":"a.ts"}}', { tool: 'edit', path: 'a.ts', failed: false }],
    ['{"tool_name":"Read","tool_input":{"file_path":7},"note":"reads /etc/passwd"}', { tool: 'Read', failed: false }],
    ['{"tool_name":"Read","tool_input":"path a.ts","agent_type":"explorer"}', { tool: 'Read', failed: false, subagent: 'explorer' }],
  ])('reads %s as %j', (line, expected) => {
    expect(parseToolUse(line)).toEqual(expected);
  });

  it('gives the same records however the file grows', () => {
    const file = bytes(`${read}\n\n${shell}\n${read}\n`);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: file.length }), { maxLength: 8 }), (cuts) => {
        let cursor = 0;
        let count = 0;
        for (const cut of [...cuts.sort((a, b) => a - b), file.length]) {
          const drain = drainTap(file.subarray(0, Math.max(cut, cursor)), cursor);
          cursor = drain.cursor;
          count += drain.records.length;
        }
        return cursor === file.length && count === 3;
      }),
    );
  });

  it('passes over a line longer than one drain, and says that more waits', () => {
    const long = new Uint8Array(TAP_MAX_BYTES + 10).fill(0x78);
    const first = drainTap(long, 0);
    expect(first).toMatchObject({ truncated: true, cursor: TAP_MAX_BYTES, records: [] });
  });
});
