import type { BootSpec, DestroyReport, Driver, Vm } from '../port/driver.ts';
import { endedBy } from '../port/ended-by.ts';
import { type DriverRig, shell } from './driver-rig.ts';

/** A rig whose cases run one after another in one VM, for drivers whose boots take seconds. */
export interface SharedRig extends DriverRig {
  /** Destroys the VM. Rejects when something of it is left. */
  close(): Promise<DestroyReport | undefined>;
}

/** Empties what a case may have written to; what was closed is opened first. */
const CLEAN = (folders: readonly string[]): string =>
  folders.map((folder) => `chmod -R u+rwX ${folder}; cd ${folder} && ls -A | while read -r name; do rm -rf -- "$name"; done`).join('; ');

/** Lets cases share one VM: `boot` gives the one that is up with the handlers of the new spec, `destroy` cleans it. */
export function shareVm(rig: DriverRig): SharedRig {
  let vm: Vm | undefined;
  let current: BootSpec | undefined;
  const boot = async (spec: BootSpec): Promise<Vm> => {
    // The marker and the folder stay those of the VM that is up.
    current = { ...spec, attemptMarker: current?.attemptMarker ?? spec.attemptMarker };
    vm ??= await rig.driver.boot({
      ...spec,
      onStream: (stream, request, session) => current?.onStream(stream, request, session),
      onRefused: (refusal) => current?.onRefused(refusal),
    });
    return shared(vm);
  };
  const driver: Driver = { name: rig.driver.name, probe: () => rig.driver.probe(), boot };
  return {
    ...rig,
    driver,
    newSpec: async () => {
      const spec = await rig.newSpec();
      return current === undefined ? spec : { ...spec, attemptMarker: current.attemptMarker };
    },
    close: async () => await vm?.destroy(),
  };
}

function shared(vm: Vm): Vm {
  const clean = async (): Promise<DestroyReport> => {
    const { workspace, home } = vm.guestPaths;
    const { output } = await shell(vm, `${CLEAN([workspace, home])}; ls -A ${workspace} ${home} | grep -v -e ':$' -e '^$'`, { cwd: '/' });
    const left = output.split('\n').filter((line) => line !== '');
    return { removed: left.length === 0, killed: 0, left };
  };
  return endedBy(vm, clean);
}
