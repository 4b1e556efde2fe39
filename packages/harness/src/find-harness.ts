import type { Backend } from '@firecrew/backend';
import { commandHarness } from './command-harness.ts';
import type { Harness } from './harness.ts';

/** The harness that a backend names. */
export function harnessOf(backend: Pick<Backend, 'harness'>): Harness {
  switch (backend.harness.kind) {
    case 'command':
      return commandHarness;
  }
}
