import { mkdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { drainTap, TAP_EVENT_MAX_BYTES, tapHookScript } from '../src/index.ts';
import { describeUnderShells, HookHome } from './hook-home.ts';

describeUnderShells('the tool tap', (shell) => {
  let home: HookHome;
  beforeEach(() => {
    home = new HookHome(shell);
  });
  afterEach(() => home.remove());

  it('appends one line for each event and says nothing', () => {
    for (const tool of ['Read', 'Edit']) expect(home.tap(`{"tool_name":"${tool}"}\n`)).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(drainTap(readFileSync(home.at('tap.jsonl')), 0).records.map((record) => record.tool)).toEqual(['Read', 'Edit']);
  });

  it('exits 0 when it cannot write', () => {
    mkdirSync(home.at('folder'));
    expect(home.tap('{}', home.at('folder'))).toMatchObject({ status: 0, stdout: '' });
    expect(home.tap('{}', '/nowhere/at/all')).toMatchObject({ status: 0, stdout: '' });
  });

  it('cuts an event that is too long to one line of the limit', () => {
    home.tap(`{"tool_name":"Write","tool_input":{"content":"${'x'.repeat(TAP_EVENT_MAX_BYTES + 1000)}"}}`);
    home.tap('{"tool_name":"Read"}');
    const file = readFileSync(home.at('tap.jsonl'));
    expect(file.indexOf(0x0a)).toBe(TAP_EVENT_MAX_BYTES - 1);
    expect(drainTap(file, 0)).toMatchObject({ lines: 2, skippedLines: 1, records: [{ tool: 'Read' }] });
  });
});

describe('the tool tap', () => {
  it('contains no other exit status than 0', () => {
    expect(tapHookScript().match(/exit\s+\S+/g)).toEqual(['exit 0']);
  });
});
