export {
  type CallerPath,
  callerPathBinds,
  MAX_FOLDER_ENTRIES,
  MAX_PATH_BINDS,
  MAX_PATH_FOLDERS,
} from './caller-path/caller-path-binds.ts';
export { removeNotedGroups } from './cgroup/vm-cgroup.ts';
export type { GroupSettings } from './cgroup/vm-groups.ts';
export {
  FIRECRACKER_BOOT_TIMEOUT_MS,
  FirecrackerDriver,
  type FirecrackerDriverOptions,
} from './firecracker-driver/firecracker-driver.ts';
export type { JailerSettings } from './firecracker-driver/jailer-arguments.ts';
export type { DiskLimits, TokenBucket } from './firecracker-driver/rate-limits.ts';
export { followAcrossSessions, runExec } from './guest-client/across-sessions.ts';
export { CALL_TIMEOUT_MS, OUTER_GRACE_MS, outerDeadlineMs, TRANSFER_IDLE_MS } from './guest-client/deadlines.ts';
export {
  DEFAULT_OUTPUT_LIMIT_BYTES,
  type ExecRequest,
  followExec,
  isLinkError,
  killExec,
  startExec,
  waitExec,
} from './guest-client/execs.ts';
export { GuestRefusal, MAX_BODY_BYTES } from './guest-client/read-body.ts';
export { type GuestHealth, guestHealth, shutdownGuest } from './guest-client/simple-requests.ts';
export { DEFAULT_PUT_BYTES, getTree, type PutOptions, putTree } from './guest-client/transfers.ts';
export { GuestEndpoint, MAX_GUEST_CONNECTIONS, refuseStream, SESSION_WAIT_MS } from './guest-endpoint/guest-endpoint.ts';
export { rescueVmId, VM_BOOT_TIMEOUT_MS } from './machine/start-vm.ts';
export type { Accelerator, MachineModel, OpenBootFiles } from './machine/vm-assets.ts';
export type {
  BootSpec,
  DestroyReport,
  Driver,
  DriverProbe,
  GuestOwner,
  GuestPaths,
  OutgoingTree,
  ReadOnlyBind,
  TreeExclusion,
  Vm,
  VmExit,
} from './port/driver.ts';
export { type BubblewrapProbe, probeBubblewrap } from './process-driver/probe-bubblewrap.ts';
export { BOOT_TIMEOUT_MS, ProcessDriver, type ProcessDriverOptions } from './process-driver/process-driver.ts';
export { removeGuestFolder } from './process-driver/remove-folder.ts';
export { rescueFromFolder } from './process-driver/rescue-tree.ts';
export {
  ATTEMPT_VARIABLE,
  findMarked,
  type KillReport,
  killMarked,
  MAX_KILL_PASSES,
  signalProcess,
} from './processes/marked-processes.ts';
export { QemuDriver, type QemuDriverOptions } from './qemu-driver/qemu-driver.ts';
export { type IgnoreFile, ignoredPaths } from './tree-transfer/ignore-rules.ts';
export { NO_EXCLUSION, treeSelectionOf, trimExclusion } from './tree-transfer/select-tree.ts';
export { INCOMPLETE_REASONS, trailerOf } from './tree-transfer/trailer.ts';
export type { UserRange } from './users/judge-uid.ts';
export { ownUsers } from './users/own-users.ts';
export { type LentUser, VmUsers, type VmUsersOptions } from './users/vm-users.ts';
