import { expect, it } from 'vitest';
import * as vmm from '../src/index.ts';
import { driverCases } from '../src/testing/index.ts';

it('exports these values and no others', () => {
  expect(Object.keys(vmm).sort()).toMatchInlineSnapshot(`
    [
      "ATTEMPT_VARIABLE",
      "BOOT_TIMEOUT_MS",
      "CALL_TIMEOUT_MS",
      "DEFAULT_OUTPUT_LIMIT_BYTES",
      "DEFAULT_PUT_BYTES",
      "FIRECRACKER_BOOT_TIMEOUT_MS",
      "FirecrackerDriver",
      "GuestEndpoint",
      "GuestRefusal",
      "INCOMPLETE_REASONS",
      "MAX_BODY_BYTES",
      "MAX_FOLDER_ENTRIES",
      "MAX_GUEST_CONNECTIONS",
      "MAX_KILL_PASSES",
      "MAX_PATH_BINDS",
      "MAX_PATH_FOLDERS",
      "NO_EXCLUSION",
      "OUTER_GRACE_MS",
      "ProcessDriver",
      "QemuDriver",
      "SESSION_WAIT_MS",
      "TRANSFER_IDLE_MS",
      "VM_BOOT_TIMEOUT_MS",
      "VmUsers",
      "callerPathBinds",
      "findMarked",
      "followAcrossSessions",
      "followExec",
      "getTree",
      "guestHealth",
      "ignoredPaths",
      "isLinkError",
      "killExec",
      "killMarked",
      "outerDeadlineMs",
      "ownUsers",
      "probeBubblewrap",
      "putTree",
      "refuseStream",
      "removeGuestFolder",
      "removeNotedGroups",
      "rescueFromFolder",
      "rescueVmId",
      "runExec",
      "shutdownGuest",
      "signalProcess",
      "startExec",
      "trailerOf",
      "treeSelectionOf",
      "trimExclusion",
      "waitExec",
    ]
  `);
});

it('limits and time limits are these', () => {
  expect({
    boot: vmm.BOOT_TIMEOUT_MS,
    call: vmm.CALL_TIMEOUT_MS,
    grace: vmm.OUTER_GRACE_MS,
    idle: vmm.TRANSFER_IDLE_MS,
    body: vmm.MAX_BODY_BYTES,
    session: vmm.SESSION_WAIT_MS,
    connections: vmm.MAX_GUEST_CONNECTIONS,
    passes: vmm.MAX_KILL_PASSES,
  }).toEqual({ boot: 30_000, call: 20_000, grace: 30_000, idle: 120_000, body: 4_194_304, session: 30_000, connections: 16, passes: 200 });
});

it('the compliance suite has names that differ', () => {
  expect(new Set(driverCases.map(({ name }) => name)).size).toBe(driverCases.length);
});
