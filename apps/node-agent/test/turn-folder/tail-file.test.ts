import { appendFileSync, mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TailFile } from '../../src/turn-folder/tail-file.ts';

let folder: string;
let tail: TailFile;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-tail-'));
  tail = new TailFile(join(folder, 'log'));
});
afterEach(async () => {
  tail.close();
  await rm(folder, { recursive: true, force: true });
});

const append = (text: string) => appendFileSync(join(folder, 'log'), text);

describe('the tail of a file', () => {
  it('is empty while the file is not there, and begins when it comes', () => {
    expect(tail.read(0, 100).length).toBe(0);
    append('one');
    expect(tail.read(0, 100).toString()).toBe('one');
  });

  it('gives what was appended behind an offset, at most what is wanted', () => {
    append('one');
    expect(tail.read(0, 2).toString()).toBe('on');
    append(' two');
    expect(tail.read(2, 100).toString()).toBe('e two');
    expect(tail.read(7, 100).length).toBe(0);
    expect(tail.read(100, 100).length).toBe(0);
  });

  it('goes on after it was closed', () => {
    append('one');
    tail.close();
    expect(tail.read(0, 100).toString()).toBe('one');
  });

  it('says so when it cannot be read, and does not take that for empty', () => {
    mkdirSync(join(folder, 'log'));
    expect(() => tail.read(0, 100)).toThrow(expect.objectContaining({ code: 'EISDIR' }));
    expect(() => new TailFile(join(folder, 'log', 'x'.repeat(300))).read(0, 1)).toThrow(expect.objectContaining({ code: 'ENAMETOOLONG' }));
  });
});
