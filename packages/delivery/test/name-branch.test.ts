import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BRANCH_MAX_CHARS, isSafeBranchName, nameBranch, nameDivergedBranch, SLUG_MAX_CHARS, slugOf } from '../src/index.ts';

const SHA = 'a1b2c3d4e5f60718293a4b5c6d7e8f9001122334';
const gitAccepts = (name: string): boolean => {
  try {
    execFileSync('git', ['check-ref-format', `refs/heads/${name}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

describe('the branch of a delivery', () => {
  it.each([
    ['Fix the login page', 'fix-the-login-page'],
    ['  --Añadir  ÜBER/..lock ', 'anadir-uber-lock'],
    ['日本語', 'mission'],
    ['', 'mission'],
    ['a'.repeat(60), 'a'.repeat(SLUG_MAX_CHARS)],
    [`${'a'.repeat(SLUG_MAX_CHARS - 1)} b`, 'a'.repeat(SLUG_MAX_CHARS - 1)],
  ])('writes %j as the slug %j', (title, slug) => {
    expect(slugOf(title)).toBe(slug);
  });

  it('holds the slug and the last eight characters of the mission id', () => {
    const input = { title: 'Fix it', missionId: 'msn_0123456789abcdef' };
    expect(nameBranch({ ...input, verified: true })).toBe('firecrew/fix-it-89abcdef');
    expect(nameBranch({ ...input, verified: false })).toBe('firecrew/fix-it-89abcdef-wip');
  });

  it('refuses a mission id without a short form', () => {
    expect(() => nameBranch({ title: 'x', missionId: 'abc', verified: true })).toThrow(
      expect.objectContaining({ code: 'invalid_mission_id' }),
    );
  });

  it('adds eight characters of the commit when histories diverged', () => {
    expect(nameDivergedBranch('firecrew/fix-it-89abcdef', SHA)).toBe('firecrew/fix-it-89abcdef-a1b2c3d4');
    expect(() => nameDivergedBranch('x', 'a1b2c3d4')).toThrow(expect.objectContaining({ code: 'invalid_commit_id' }));
    expect(() => nameDivergedBranch('x..y', SHA)).toThrow(expect.objectContaining({ code: 'invalid_branch' }));
  });

  it('is a safe branch name for every title', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (title, verified) => {
        const name = nameBranch({ title, missionId: 'msn_0123456789abcdef', verified });
        expect(isSafeBranchName(name)).toBe(true);
        expect(isSafeBranchName(nameDivergedBranch(name, SHA))).toBe(true);
        expect(name).toMatch(/^firecrew\/[a-z0-9]+(?:-[a-z0-9]+)*$/);
      }),
    );
  });

  it('calls no name safe that git refuses', () => {
    const names = [
      'a..b',
      'a.lock',
      'a/.b',
      '.a',
      'a//b',
      '/a',
      'a/',
      'a b',
      'a~1',
      'a^',
      'a:b',
      'a?',
      'a*',
      'a[',
      'a\\b',
      'a@{b',
      'a.',
      '',
      'a\u007f',
      'a\tb',
    ];
    for (const name of names) expect([name, isSafeBranchName(name), gitAccepts(name)]).toEqual([name, false, false]);
    for (const name of ['main', 'feature/x', 'a-b', 'ü', 'a@b', 'v1.2'])
      expect([name, isSafeBranchName(name), gitAccepts(name)]).toEqual([name, true, true]);
    for (const name of ['-x', '@', 'HEAD', 'a'.repeat(BRANCH_MAX_CHARS + 1)]) expect(isSafeBranchName(name)).toBe(false);
    expect(isSafeBranchName('a'.repeat(BRANCH_MAX_CHARS))).toBe(true);
  });
});
