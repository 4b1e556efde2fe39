import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError, fatalLine } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readLastWords } from '../src/supervisor/last-words.ts';

let folder: string;
let log: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-log-'));
  log = join(folder, 'server.log');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const fatal = (pid: number, over = {}) =>
  JSON.stringify({ level: 60, pid, code: 'listen_failed', msg: 'no port', action: 'Choose.', ...over });

describe('the last words of a process', () => {
  it('are its own newest fatal line', () => {
    writeFileSync(
      log,
      `${fatal(7, { msg: 'old' })}\n${fatal(7)}\n${fatal(8)}\n{"level":30,"pid":7,"msg":"later"}\n{"level":60,"pid":7,"ms`,
    );
    expect(readLastWords(log, 7)).toEqual({ code: 'listen_failed', message: 'no port', action: 'Choose.' });
  });

  it('are what a program of ours writes when it cannot go on', () => {
    const error = new CodedError('listen_failed', 'no port', { action: 'Choose.' });
    writeFileSync(log, `${fatalLine(error, { role: 'server', pid: 7, atMs: 1 })}\n`);
    expect(readLastWords(log, 7)).toEqual({ code: 'listen_failed', message: 'no port', action: 'Choose.' });
  });

  it('point to the log where they say no code and no action', () => {
    writeFileSync(log, `${JSON.stringify({ level: 60, pid: 7, msg: 'boom' })}\n`);
    expect(readLastWords(log, 7)).toEqual({ code: 'process_ended', message: 'boom', action: `Read ${log}.` });
  });

  it.each([
    ['without a log', undefined],
    ['in an empty log', ''],
    ['of another process', `${fatal(8)}\n`],
    ['that are no JSON', 'firecrew server: listen_failed\n'],
    ['before too much else', `${fatal(7)}\n${'x\n'.repeat(64 * 1024)}`],
  ])('are none %s', (_what, text) => {
    if (text !== undefined) writeFileSync(log, text);
    expect(readLastWords(log, 7)).toBeUndefined();
  });
});
