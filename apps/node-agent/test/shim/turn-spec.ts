import { type TurnSpec, turnSpecSchema } from '@firecrew/protocol';

const DIGEST = 'a'.repeat(64);
const BLOB = { digest: DIGEST, bytes: 1 };

/** A turn specification with everything in it; `over` replaces top-level parts. */
export function turnSpec(over: Partial<TurnSpec> = {}): TurnSpec {
  return turnSpecSchema.parse({
    generation: 1,
    missionId: 'msn_0123456789abcdef',
    phaseId: 'phs_0123456789abcdef',
    runId: 'run_0123456789abcdef',
    turnId: 'trn_0123456789abcdef',
    nodeId: 'nod_0123456789abcdef',
    attempt: 1,
    epoch: 1,
    iteration: 1,
    step: 0,
    kind: 'coding',
    task: 'do it',
    backend: 'command',
    driver: 'process',
    allowUnisolated: true,
    agent: { command: 'true', files: [], env: {} },
    setup: { command: 'true', allow: ['setup.example'], timeoutMs: 1000 },
    check: { command: 'true', timeoutMs: 1000 },
    gate: { mode: 'fresh-vm', requireChange: true, maxRounds: 3, protect: [] },
    egress: { allow: ['agent.example'], ceiling: null, addressRules: [] },
    workspace: { snapshotId: DIGEST, blob: BLOB },
    base: { snapshotId: DIGEST, blob: BLOB, commit: null },
    git: null,
    ignore: [],
    demand: { memoryMib: 1, diskMib: 1, vcpus: 1 },
    limits: { turnTimeoutMs: 1000, checkpointEveryMs: 1000, logBytes: 1000 },
    lease: { ttlMs: 1000, selfStopAtMs: 800 },
    ...over,
  });
}
