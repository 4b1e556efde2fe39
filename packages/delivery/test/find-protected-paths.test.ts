import { describe, expect, it } from 'vitest';
import { findProtectedPaths, isProtectedPath } from '../src/index.ts';

describe('protected paths', () => {
  it.each([
    ['.github/workflows/ci.yml', 'ci'],
    ['.GitHub/Workflows/CI.YML', 'ci'],
    ['./.github//workflows/x', 'ci'],
    ['.github/actions/setup/action.yml', 'ci'],
    ['.github/workflows', 'ci'],
    ['.gitlab-ci.yml', 'ci'],
    ['sub/.gitlab-ci.yaml', 'ci'],
    ['.forgejo/workflows/a.yml', 'ci'],
    ['.gitea/workflows/a.yml', 'ci'],
    ['.circleci/config.yml', 'ci'],
    ['Jenkinsfile', 'ci'],
    ['ci/Jenkinsfile.release', 'ci'],
    ['azure-pipelines.yml', 'ci'],
    ['bitbucket-pipelines.yml', 'ci'],
    ['.travis.yml', 'ci'],
    ['.woodpecker/test.yml', 'ci'],
    ['.buildkite/pipeline.yml', 'ci'],
    ['.drone.yml', 'ci'],
    ['.cirrus.yml', 'ci'],
    ['cloudbuild.yaml', 'ci'],
    ['.builds/alpine.yml', 'ci'],
    ['CODEOWNERS', 'code_owners'],
    ['docs/codeowners', 'code_owners'],
    ['.husky/pre-commit', 'hook_manager'],
    ['lefthook.yml', 'hook_manager'],
    ['.lefthook-local.toml', 'hook_manager'],
    ['.pre-commit-config.yaml', 'hook_manager'],
    ['.githooks/pre-push', 'hook_manager'],
    ['.lintstagedrc.json', 'hook_manager'],
    ['.overcommit.yml', 'hook_manager'],
    ['.gitmodules', 'forge_settings'],
    ['.gitattributes', 'forge_settings'],
    ['.github/settings.yml', 'forge_settings'],
    ['.mergify.yml', 'forge_settings'],
    ['renovate.json', 'dependency_bot'],
    ['.github/dependabot.yml', 'dependency_bot'],
  ])('protects %s as %s', (path, reason) => {
    expect(isProtectedPath(path)?.reason).toBe(reason);
  });

  it.each([
    'src/index.ts',
    'github/workflows/ci.yml',
    'docs/.github-workflows.md',
    'src/husky/x',
    'CODEOWNERS.md',
    'settings.yml',
    'package.json',
  ])('leaves %s alone', (path) => {
    expect(isProtectedPath(path)).toBeUndefined();
  });

  it('takes paths as bytes, which need not be UTF-8, and keeps them', () => {
    const odd = Uint8Array.from([...new TextEncoder().encode('.github/workflows/'), 0xff]);
    const found = findProtectedPaths([odd, new TextEncoder().encode('a.txt')]);
    expect(found).toEqual([{ path: odd, reason: 'ci', rule: '.github/workflows/**' }]);
  });
});
