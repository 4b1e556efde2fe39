import type { DriverCase } from './driver-rig.ts';
import { environmentCases } from './environment-cases.ts';
import { execCases } from './exec-cases.ts';
import { lifeCases } from './life-cases.ts';
import { treeCases } from './tree-cases.ts';

export { cgroupStandIn } from './cgroup-stand-in.ts';
export { type BootedVm, type DriverCase, type DriverRig, shell, withVm } from './driver-rig.ts';
export { tryLimitGroups } from './limit-groups.ts';
export { HONEST_END, LYING_RECORDS } from './lying-records.ts';
export { type SharedRig, shareVm } from './share-vm.ts';

/** The compliance suite of the Driver port: every driver passes all cases, but for those of isolation where it has none. */
export const driverCases: readonly DriverCase[] = [...execCases, ...environmentCases, ...treeCases, ...lifeCases];
