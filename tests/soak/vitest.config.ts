import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** One property, however often it runs, ends within this. */
const PROPERTY_MS = 3_600_000;

export default defineConfig({
  root: fileURLToPath(new URL('../../', import.meta.url)),
  resolve: { alias: [{ find: /^fast-check$/, replacement: fileURLToPath(new URL('./fast-check.ts', import.meta.url)) }] },
  test: {
    include: ['packages/*/test/**/*.test.ts'],
    testTimeout: PROPERTY_MS,
    hookTimeout: 60_000,
    reporters: [['default', { summary: false }]],
  },
});
