import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { CodedError, fatalLine, programVersion } from '../src/index.ts';

const SPEAKER = { role: 'server', pid: 7, atMs: 1_000 };

it('the last line of a program says what happened and what to do, and the stack of what nobody expected', () => {
  const coded = JSON.parse(fatalLine(new CodedError('listen_failed', 'no port', { action: 'Choose.', cause: 'secret' }), SPEAKER));
  expect(coded).toEqual({ level: 60, time: 1_000, role: 'server', pid: 7, code: 'listen_failed', action: 'Choose.', msg: 'no port' });
  const odd = JSON.parse(fatalLine(new TypeError('a\nb'), SPEAKER));
  expect(odd).toEqual({ level: 60, time: 1_000, role: 'server', pid: 7, stack: expect.stringContaining('TypeError'), msg: 'a\nb' });
  expect(fatalLine(new TypeError('a\nb'), SPEAKER)).not.toContain('\n');
  expect(JSON.parse(fatalLine('thrown', SPEAKER))).toEqual({ level: 60, time: 1_000, role: 'server', pid: 7, msg: 'thrown' });
});

it.each([
  ['{"version":"1.2.3"}', '1.2.3'],
  ['{"version":1}', '0.0.0'],
  ['[]', '0.0.0'],
])('the version of a program in a checkout is that of its package: %s', (text, version) => {
  const folder = mkdtempSync(join(tmpdir(), 'fc-version-'));
  try {
    writeFileSync(join(folder, 'package.json'), text);
    expect(programVersion(pathToFileURL(join(folder, 'package.json')))).toBe(version);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
