import { describe, expect, it } from 'vitest';
import { checkInputsChanged } from '../src/index.ts';

describe('inputs of the check', () => {
  it.each([
    ['src/add.test.ts', 'npm test', 'test_file'],
    ['src/add.spec.js', 'npm test', 'test_file'],
    ['tests/data/input.txt', 'pytest', 'test_file'],
    ['pkg/add_test.go', 'go test ./...', 'test_file'],
    ['test_add.py', 'pytest', 'test_file'],
    ['src/AddTest.java', 'mvn test', 'test_file'],
    ['spec/add_spec.rb', 'rspec', 'test_file'],
    ['src/__snapshots__/a.js.snap', 'npm test', 'test_file'],
    ['package.json', 'npm test', 'runner_configuration'],
    ['packages/a/package.json', 'pnpm -r test', 'runner_configuration'],
    ['vitest.config.ts', 'npm test', 'runner_configuration'],
    ['jest.config.js', './ci', 'runner_configuration'],
    ['conftest.py', 'make check', 'runner_configuration'],
    ['Makefile', 'make check', 'runner_configuration'],
    ['pyproject.toml', 'python3 -m pytest', 'runner_configuration'],
    ['Cargo.toml', 'cargo test', 'runner_configuration'],
    ['check.sh', './check.sh', 'check_script'],
    ['check.sh', 'sh check.sh --fast', 'check_script'],
    ['ci/check.sh', 'cd src && bash "ci/check.sh"', 'check_script'],
    ['ci/lib.sh', 'run-all ci/', 'check_script'],
    ['gradlew', './gradlew test', 'check_script'],
    ['check', 'sh check', 'check_script'],
    ['pkg/check.sh', 'cd pkg/ && ./check.sh', 'check_script'],
    ['test.mjs', 'node --test', 'test_file'],
    ['run-tests.sh', 'make', 'test_file'],
    ['test/add.js', 'npm test', 'test_file'],
  ])('%s is one of %j: %s', (path, command, kind) => {
    expect(checkInputsChanged([path], command)).toEqual([{ path, kind }]);
  });

  it.each([
    ['src/add.ts', 'npm test'],
    ['README.md', './check.sh'],
    ['package.json', 'cargo test'],
    ['Makefile', 'npm test'],
    ['src/latest.ts', 'npm test'],
    ['src/contest/entry.ts', 'npm test'],
    ['check.sh.txt', './check.sh'],
    ['src/attestation.go', 'go build'],
    ['build/out.js', 'npm run build'],
    ['src/a.ts', './'],
    ['src/a.ts', 'cd . && npm run x -- / ./'],
  ])('%s is none of %j', (path, command) => {
    expect(checkInputsChanged([path], command)).toEqual([]);
  });
});
