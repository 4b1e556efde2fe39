import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildInit, compiler, REPOSITORY } from './support/tools.ts';

const why = compiler === undefined ? ' (not run: no C compiler is installed)' : '';

describe('the build of guest-init', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'fc-build-init-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it.skipIf(compiler === undefined)(`gives the same bytes in another folder, of a static program that only pid 1 may be${why}`, () => {
    const [one, other] = [buildInit(join(folder, 'one')), buildInit(join(folder, 'other/deeper'))];
    const program = readFileSync(one);
    expect(program.equals(readFileSync(other))).toBe(true);
    expect(program.subarray(0, 4).toString('latin1')).toBe('\x7fELF');
    // No interpreter (PT_INTERP), no build id, no name of this machine's folders.
    expect(programHeaders(program)).not.toContain(3);
    expect(program.includes(folder)).toBe(false);
    expect(program.includes(REPOSITORY)).toBe(false);
    expect(statSync(one).size).toBeLessThan(1024 * 1024);
    expect(spawnSync(one, ['--help']).status).toBe(2);
  });

  it('says what to install where there is no compiler', () => {
    const { status, stderr } = spawnSync(process.execPath, ['tools/build-init.mjs', folder], {
      cwd: REPOSITORY,
      env: { PATH: folder },
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toBe('build-init: no C compiler (musl-gcc, cc, gcc, clang) is installed. On Debian: apt-get install gcc libc6-dev\n');
  });
});

/** Types of the program headers of a 64-bit ELF file. */
function programHeaders(program: Buffer): number[] {
  const [offset, size, count] = [Number(program.readBigUInt64LE(32)), program.readUInt16LE(54), program.readUInt16LE(56)];
  return Array.from({ length: count }, (_header, index) => program.readUInt32LE(offset + index * size));
}
