import { describe, expect, it } from 'vitest';
import { detectSetup } from '../src/index.ts';

describe('the detected set-up', () => {
  it.each([
    ['package-lock.json', 'npm ci'],
    ['npm-shrinkwrap.json', 'npm ci'],
    ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile'],
    ['yarn.lock', 'yarn install --frozen-lockfile --non-interactive'],
    ['bun.lock', 'bun install --frozen-lockfile'],
    ['bun.lockb', 'bun install --frozen-lockfile'],
    ['deno.lock', 'deno install --frozen'],
    ['uv.lock', 'uv sync --frozen'],
    ['poetry.lock', 'poetry install --no-interaction'],
    ['pdm.lock', 'pdm sync'],
    ['Pipfile.lock', 'pipenv sync --dev'],
    ['requirements.txt', 'python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt'],
    ['Cargo.lock', 'cargo fetch --locked'],
    ['go.sum', 'go mod download'],
    ['Gemfile.lock', 'BUNDLE_FROZEN=true bundle install'],
    ['composer.lock', 'composer install --no-interaction'],
    ['mix.lock', 'mix deps.get'],
    ['pubspec.lock', 'dart pub get --enforce-lockfile'],
    ['packages.lock.json', 'dotnet restore --locked-mode'],
    ['Package.resolved', 'swift package resolve'],
  ])('for %s is %s, with the reason to say and the hosts it needs', (file, command) => {
    const detected = detectSetup(['README.md', file]);
    expect(detected).toMatchObject({ command, steps: [{ file, command }] });
    expect(detected.reason).toContain(file);
    expect(detected.reason).toContain(command);
    expect(detected.hosts.length).toBeGreaterThan(0);
  });

  it('knows the newer yarn by its configuration', () => {
    expect(detectSetup(['yarn.lock', '.yarnrc.yml']).command).toBe('yarn install --immutable');
  });

  it('takes one lock file of an ecosystem, and each ecosystem in turn', () => {
    const detected = detectSetup(['package-lock.json', 'pnpm-lock.yaml', 'requirements.txt', 'uv.lock']);
    expect(detected.command).toBe('pnpm install --frozen-lockfile && uv sync --frozen');
    expect(detected.hosts).toEqual(['registry.npmjs.org', 'pypi.org', 'files.pythonhosted.org']);
  });

  it('does not depend on the order of the names', () => {
    const names = ['go.sum', 'package-lock.json', 'Cargo.lock'];
    expect(detectSetup(names)).toEqual(detectSetup(names.toReversed()));
  });

  it.each([
    [[], 'no lock file'],
    [['README.md', 'Package-Lock.json', 'package-lock.json.bak'], 'no lock file'],
    [['package.json'], 'package.json is there without'],
    [['go.mod'], 'go.sum'],
  ])('for %j is none, and says why', (names, why) => {
    expect(detectSetup(names)).toMatchObject({ command: undefined, steps: [], hosts: [], reason: expect.stringContaining(why) });
  });
});
