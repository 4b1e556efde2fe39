import type { Vm } from './driver.ts';

/** The same VM with another end. It has no `seal`: whoever may seal it passes that on. */
export function endedBy(vm: Vm, destroy: Vm['destroy']): Vm {
  return {
    id: vm.id,
    isolation: vm.isolation,
    guestPaths: vm.guestPaths,
    socketPath: vm.socketPath,
    exited: vm.exited,
    pids: () => vm.pids(),
    session: (timeoutMs) => vm.session(timeoutMs),
    rescue: (path, exclude) => vm.rescue(path, exclude),
    destroy,
  };
}
