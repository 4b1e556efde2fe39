import { defineConfig } from 'vitest/config';
import { CountReporter } from './tools/count-reporter.ts';

/** Bounds of what hangs, in `ms`, and no measure of anything: a test that works ends long before, on the slowest machine too. */
const UNIT_MS = 120_000;
const LONG_MS = 300_000;
/** How long `expect.poll` looks for what it waits for. */
const expect = { poll: { timeout: 30_000 } };

export default defineConfig({
  test: {
    // Most tests wait for processes: two at a time are no slower each on the smallest machine. The default there is one.
    maxWorkers: 2,
    reporters: [['default', { summary: false }], new CountReporter()],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/*/test/**/*.test.ts', 'apps/*/test/**/*.test.ts'],
          testTimeout: UNIT_MS,
          hookTimeout: UNIT_MS,
          expect,
        },
      },
      {
        test: {
          name: 'repo',
          include: ['tests/repo/**/*.test.ts'],
          testTimeout: LONG_MS,
          hookTimeout: LONG_MS,
          expect,
        },
      },
      {
        test: {
          name: 'system',
          include: ['tests/system/**/*.test.ts'],
          testTimeout: LONG_MS,
          hookTimeout: LONG_MS,
          expect,
        },
      },
    ],
  },
});
