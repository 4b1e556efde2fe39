// Ends a test run with one line that a machine can read: `N passed, N failed, N skipped`.
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Counts of one run; a test file that did not load and an error outside any test count as failures. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The line that a run ends with. */
export function countLine({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function countTests(modules: readonly TestModule[], unhandled: number): TestCounts {
  let [passed, failed, skipped] = [0, unhandled, 0];
  for (const module of modules) {
    // A hook or an import that fails leaves no failed test behind.
    failed += module.errors().length;
    for (const suite of module.children.allSuites()) failed += suite.errors().length;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') passed += 1;
      else if (state === 'failed') failed += 1;
      else skipped += 1;
    }
  }
  return { passed, failed, skipped };
}

/** The reporter, named in `vitest.config.ts` after the one that people read. */
export class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    process.stdout.write(`\n${countLine(countTests(modules, unhandled.length))}\n`);
  }
}
