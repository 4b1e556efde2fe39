import { describe, expect, it } from 'vitest';
import { planRestore } from '../src/index.ts';

const base = ['check.sh', 'src/a.ts', 'tests/a.test.ts', 'tests/b.test.ts'].map((path) => ({ path, digest: `of ${path}` }));
const plan = (globs: readonly string[], changed: readonly string[]) => {
  const { restore, remove } = planRestore(globs, base, changed);
  return { restore: restore.map((entry) => entry.path), remove };
};

describe('restoring protected files', () => {
  it('writes changed and deleted ones again and removes new ones', () => {
    expect(plan(['tests/**'], ['src/a.ts', 'tests/a.test.ts', 'tests/new.test.ts'])).toEqual({
      restore: ['tests/a.test.ts'],
      remove: ['tests/new.test.ts'],
    });
  });

  it('leaves unchanged and unprotected ones alone', () => {
    expect(plan(['tests/**'], ['src/a.ts', 'src/new.ts'])).toEqual({ restore: [], remove: [] });
    expect(plan([], ['tests/a.test.ts'])).toEqual({ restore: [], remove: [] });
  });

  it('removes a file that stands where a protected folder was', () => {
    expect(plan(['tests/*.ts'], ['tests', 'tests/a.test.ts', 'tests/b.test.ts'])).toEqual({
      restore: ['tests/a.test.ts', 'tests/b.test.ts'],
      remove: ['tests'],
    });
  });

  it('removes what stands below a path where a protected file was', () => {
    expect(plan(['check.sh'], ['check.sh', 'check.sh/evil'])).toEqual({ restore: ['check.sh'], remove: ['check.sh/evil'] });
  });

  it('gives back the entries of the base themselves', () => {
    expect(planRestore(['check.sh'], base, ['check.sh']).restore).toEqual([{ path: 'check.sh', digest: 'of check.sh' }]);
  });

  it('refuses a glob it does not understand', () => {
    expect(() => plan(['tests/{a,b}'], [])).toThrow(expect.objectContaining({ code: 'glob_invalid' }));
  });
});
