import { defineConfig } from 'vitest/config';
import { CountReporter } from './tools/count-reporter.ts';

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
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'repo',
          include: ['tests/repo/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'system',
          include: ['tests/system/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
