import { rescueVmId } from '../machine/start-vm.ts';
import type { BootSpec, DestroyReport, Driver, GuestOwner, Vm } from '../port/driver.ts';
import { endedBy } from '../port/ended-by.ts';
import type { LentUser, VmUsers } from './vm-users.ts';

/**
 * A driver whose every VM has a user of the host of its own, and so has the second VM that reads its disk. They are given back once nothing
 * of the VM is left. `boot` rejects also with `owners_used_up`.
 */
export function ownUsers(driver: Driver, users: Pick<VmUsers, 'take'>): Driver {
  return {
    name: driver.name,
    probe: () => driver.probe(),
    boot: async (spec: BootSpec): Promise<Vm> => {
      const lent: LentUser[] = [];
      const lend = async (vmId: string): Promise<GuestOwner> => {
        const user = await users.take(vmId);
        lent.push(user);
        return user.owner;
      };
      const giveBack = (): void => {
        for (const user of lent.splice(0)) user.release();
      };
      try {
        return returning(
          await driver.boot({ ...spec, owner: await lend(spec.vmId), rescueOwner: () => lend(rescueVmId(spec.vmId)) }),
          giveBack,
        );
      } catch (error) {
        giveBack();
        throw error;
      }
    },
  };
}

function returning(vm: Vm, giveBack: () => void): Vm {
  const destroy = async (): Promise<DestroyReport> => {
    const report = await vm.destroy();
    if (report.removed) giveBack();
    return report;
  };
  const seal = vm.seal?.bind(vm);
  return { ...endedBy(vm, destroy), ...(seal === undefined ? {} : { seal }) };
}
