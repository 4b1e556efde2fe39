/** The long runs by name: the test files whose properties they repeat. */
export const SOAKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['connect-head', ['packages/egress-policy/test/read-connect-head.test.ts', 'packages/egress-policy/test/allow-entry.test.ts']],
  ['client-hello', ['packages/egress-policy/test/read-client-hello.test.ts']],
  ['egress', ['packages/egress-policy/test/effective-policy.test.ts', 'packages/egress-policy/test/decide-address.test.ts']],
  ['tar', ['packages/artifact-capture/test/tar/tar-reader.test.ts', 'packages/workspace/test/tree/round-trip.test.ts']],
  ['link', ['decode-frame', 'scan-magic', 'inbox', 'interleaving', 'abrupt-end'].map((name) => `packages/link/test/${name}.test.ts`)],
  ['name-status', ['diff/listing-properties', 'output/output'].map((name) => `packages/artifact-capture/test/${name}.test.ts`)],
  ['delivery', ['name-branch', 'parse-push', 'plan-commit'].map((name) => `packages/delivery/test/${name}.test.ts`)],
  ['seat-keys', ['never-leaks', 'resolve-seat-key'].map((name) => `packages/seat-keys/test/${name}.test.ts`)],
  ['spawn-bounds', ['check-environment', 'check-spawn'].map((name) => `packages/spawn-bounds/test/${name}.test.ts`)],
  ['manifest', ['packages/artifact-capture/test/tree/manifest.test.ts', 'packages/workspace/test/tree/snapshot-blobs.test.ts']],
  ['placement', ['choose-placement', 'plan-batch', 'never-overcommit'].map((name) => `packages/placement/test/${name}.test.ts`)],
  ['mission', ['step-mission', 'step-attempt', 'validate-plan', 'recipes'].map((name) => `packages/mission/test/${name}.test.ts`)],
  ['stop-gate', ['drain-tap', 'match-glob', 'decide-round', 'read-hook-outcome'].map((name) => `packages/stop-gate/test/${name}.test.ts`)],
  ['topology', ['build-topology', 'parallel-execution'].map((name) => `packages/topology/test/${name}.test.ts`)],
]);
