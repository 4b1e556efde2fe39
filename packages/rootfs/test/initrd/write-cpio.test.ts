import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeCpio } from '../../src/index.ts';

const entries = [
  { path: 'a', mode: 0o40755 },
  { path: 'a/secret', mode: 0o100600, content: Buffer.from('five!') },
  { path: 'empty', mode: 0o100644 },
  { path: 'link', mode: 0o120777, content: Buffer.from('a/secret') },
];

const cpio = spawnSync('cpio', ['--version']).status === 0;

describe('an initrd', () => {
  it('is the same for the same entries, and a multiple of 4 bytes so that another can follow', () => {
    const archive = writeCpio(entries);
    expect(archive.equals(writeCpio(entries))).toBe(true);
    expect(archive.length % 4).toBe(0);
    expect(archive.subarray(0, 6).toString()).toBe('070701');
  });

  it.skipIf(!cpio)('is read by cpio with names, modes and contents', () => {
    const folder = mkdtempSync(join(tmpdir(), 'fc-cpio-'));
    try {
      const { status, stderr } = spawnSync('cpio', ['-idm', '--quiet'], { cwd: folder, input: writeCpio(entries) });
      expect([status, String(stderr)]).toEqual([0, '']);
      expect(readFileSync(join(folder, 'link'), 'utf8')).toBe('five!');
      expect(statSync(join(folder, 'a/secret')).mode).toBe(0o100600);
      expect(statSync(join(folder, 'empty')).size).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.each(['', '/a', 'a//b', './a', 'a/..', 'a\0b', 'TRAILER!!!'])('has no entry %j', (path) => {
    expect(() => writeCpio([{ path, mode: 0o100644 }])).toThrow(expect.objectContaining({ code: 'bad_cpio_entry' }));
  });
});
