import type { Backend } from './backend-schema.ts';

/** The backends that come with the platform. */
export const builtinBackends: readonly Backend[] = [
  {
    name: 'command',
    label: 'Any command (the caller pays for what it calls)',
    image: null,
    drivers: ['process', 'qemu', 'firecracker'],
    harness: { kind: 'command' },
    hosts: [],
    modelRoute: null,
    credentialContract: { variables: [] },
    scaffolding: [],
    demand: {},
  },
];
