import { CodedError, messageOf } from '@firecrew/base';
import { guestHealth } from '../guest-client/simple-requests.ts';
import { firstAnswer } from '../guest-endpoint/first-answer.ts';
import { GuestEndpoint } from '../guest-endpoint/guest-endpoint.ts';
import type { BootSpec, Driver, DriverProbe, GuestOwner, Vm } from '../port/driver.ts';
import { killMarked } from '../processes/marked-processes.ts';
import { checkBootSpec, guestFolder, makeGuestFolder } from './guest-layout.ts';
import { BUBBLEWRAP_PLACES, type BubblewrapProbe, probeBubblewrap } from './probe-bubblewrap.ts';
import { ProcessVm } from './process-vm.ts';
import { withoutUnreachable } from './reachable-by.ts';
import { removeGuestFolder } from './remove-folder.ts';
import { type GuestProcess, logTail, startGuest } from './start-guest.ts';

/** Time from the start of the guest agent to its first answer, in `ms`. */
export const BOOT_TIMEOUT_MS = 30_000;

/** How the driver isolates; `auto` uses bubblewrap where it works, `off` never. */
export interface ProcessDriverOptions {
  readonly bubblewrap?: 'auto' | 'off';
  /** Absolute paths where bubblewrap may be; the default covers the usual ones. */
  readonly places?: readonly string[];
  readonly bootTimeoutMs?: number;
  /** Whose guests `probe` speaks about; default this process's own user. */
  readonly owner?: GuestOwner;
}

/** The `process` driver: a guest agent under bubblewrap (reduced exposure, no boundary), else beside the host's own processes. */
export class ProcessDriver implements Driver {
  readonly name = 'process';
  readonly #options: ProcessDriverOptions;
  /** By user: one may be allowed user namespaces and another not. */
  readonly #probed = new Map<number | undefined, Promise<BubblewrapProbe>>();

  constructor(options: ProcessDriverOptions = {}) {
    this.#options = options;
  }

  async probe(): Promise<DriverProbe> {
    if (process.platform !== 'linux') {
      return { available: false, isolation: 'none', detail: `the process driver needs Linux, not ${process.platform}` };
    }
    const bubblewrap = await this.#bubblewrap(this.#options.owner);
    if (!bubblewrap.usable) return { available: true, isolation: 'none', detail: `no isolation: ${bubblewrap.reason}` };
    const nested = bubblewrap.disableUserns ? 'no nested user namespaces' : 'nested user namespaces are possible';
    return {
      available: true,
      isolation: 'bubblewrap',
      detail: `bubblewrap (${bubblewrap.program}): own user, pid, net, ipc, uts and mount namespaces, ${nested}; reduced exposure, not a boundary; memory and disk are not limited, but for the size of /tmp`,
    };
  }

  async boot(wanted: BootSpec): Promise<Vm> {
    checkBootSpec(wanted);
    const spec = await withoutUnreachable(wanted);
    const bubblewrap = await this.#bubblewrap(spec.owner);
    if (!bubblewrap.usable && !spec.allowUnisolated) {
      throw new CodedError('isolation_missing', `VM ${spec.vmId} would run without isolation: ${bubblewrap.reason}.`, {
        id: spec.vmId,
        action: 'Install bubblewrap, or allow it with --allow-unisolated.',
      });
    }
    const places = await makeGuestFolder(spec);
    let endpoint: GuestEndpoint | undefined;
    let vm: ProcessVm | undefined;
    try {
      endpoint = await GuestEndpoint.open(spec, places.socketPath, spec.owner);
      const guest = await startGuest(spec, places, endpoint.secret, bubblewrap.usable ? bubblewrap : undefined);
      vm = new ProcessVm(spec, bubblewrap.usable ? 'bubblewrap' : 'none', places, endpoint, guest);
      await this.#waitForAgent(spec, endpoint, guest);
      return vm;
    } catch (cause) {
      const tail = await logTail(places);
      await this.#undo(spec, endpoint, vm);
      throw new CodedError('boot_failed', `VM ${spec.vmId} did not come up: ${messageOf(cause)} Its agent said: ${tail}`, {
        id: spec.vmId,
        action: 'Run `firecrew doctor`, then try again.',
        cause,
      });
    }
  }

  async #waitForAgent({ onLinkUp }: BootSpec, endpoint: GuestEndpoint, guest: GuestProcess): Promise<void> {
    const ended = guest.exited.then(({ code, signal }) => {
      throw new CodedError('vm_exited', `The guest agent ended (${signal ?? `exit ${code ?? 'unknown'}`}) before it answered.`);
    });
    ended.catch(() => undefined);
    const timeoutMs = this.#options.bootTimeoutMs ?? BOOT_TIMEOUT_MS;
    await Promise.race([firstAnswer(endpoint, { timeoutMs, ask: guestHealth, onLinkUp }), ended]);
  }

  async #undo(spec: BootSpec, endpoint: GuestEndpoint | undefined, vm: ProcessVm | undefined): Promise<void> {
    if (vm !== undefined) {
      await vm.destroy();
      return;
    }
    await endpoint?.close();
    await killMarked(spec.attemptMarker);
    await removeGuestFolder(guestFolder(spec.folder).folder);
  }

  #bubblewrap(owner: GuestOwner | undefined): Promise<BubblewrapProbe> {
    if (this.#options.bubblewrap === 'off') return Promise.resolve({ usable: false, reason: 'bubblewrap is switched off' });
    let probed = this.#probed.get(owner?.uid);
    if (probed === undefined) {
      probed = probeBubblewrap(this.#options.places ?? BUBBLEWRAP_PLACES, owner);
      this.#probed.set(owner?.uid, probed);
    }
    return probed;
  }
}
