import { dirname } from 'node:path';
import { CodedError } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { readDiskState } from '@firecrew/rootfs';
import { shutdownGuest } from '../guest-client/simple-requests.ts';
import { getTree } from '../guest-client/transfers.ts';
import type { BootSpec, DestroyReport, GuestPaths, OutgoingTree, TreeExclusion, Vm, VmExit } from '../port/driver.ts';
import { guestPaths, IN_GUEST } from '../process-driver/guest-layout.ts';
import { removeGuestFolder } from '../process-driver/remove-folder.ts';
import { findMarked, killMarked } from '../processes/marked-processes.ts';
import type { BootedMachine } from './machine.ts';
import { endsWithin, stopMachine } from './stop-machine.ts';

/** Time a guest has to end when its disk is to be kept, in `ms`: all that it wrote has to reach the disk. */
export const GUEST_SEAL_MS = 60_000;

/** Boots the VM that reads the dead one's disk. */
export type BootRescue = () => Promise<BootedMachine>;

/** One VM of a VMM. */
export class MachineVm implements Vm {
  readonly id: string;
  readonly isolation = 'vm' as const;
  readonly guestPaths: GuestPaths;
  readonly socketPath: string;
  readonly exited: Promise<VmExit>;
  readonly #spec: BootSpec;
  readonly #booted: BootedMachine;
  readonly #scratch: string;
  readonly #bootRescue: BootRescue;
  #rescue: Promise<BootedMachine> | undefined;
  #stopped: Promise<Stopped> | undefined;
  #destroyed: Promise<DestroyReport> | undefined;

  constructor(spec: BootSpec, booted: BootedMachine, scratch: string, bootRescue: BootRescue) {
    this.id = spec.vmId;
    const { workspace, home, tmp, agentDir, taskDir } = guestPaths('/');
    this.guestPaths = { workspace, home, tmp, agentDir, taskDir };
    this.socketPath = booted.endpoint.socketPath;
    this.exited = booted.machine.exited;
    this.#spec = spec;
    this.#booted = booted;
    this.#scratch = scratch;
    this.#bootRescue = bootRescue;
    void booted.machine.exited.then(({ detail }) => {
      booted.endpoint.fail(
        new CodedError('vm_exited', `VM ${spec.vmId} ended: ${detail ?? 'no reason is known'}.`, {
          id: spec.vmId,
          action: 'Rescue its tree, destroy it, and start the attempt again.',
        }),
      );
    });
  }

  async pids(): Promise<number[]> {
    return findMarked(this.#spec.attemptMarker);
  }

  session(timeoutMs?: number): Promise<LinkSession> {
    return this.#booted.endpoint.session(timeoutMs);
  }

  /** Reads the disk in a second VM of ours, which executes nothing of it. One rescue VM serves all calls until `destroy`. */
  async rescue(path: string, exclude?: TreeExclusion): Promise<OutgoingTree> {
    const { workspace } = IN_GUEST;
    // Only the delivered folder is ever read back; the rescue agent opens it by name, and a link in its place is refused there.
    if (path !== workspace) {
      throw new CodedError('rescue_refused', `${JSON.stringify(path)} of VM ${this.id} cannot be read: it is not ${workspace}.`, {
        id: this.id,
        action: 'Ask for the workspace by its real path.',
      });
    }
    await this.#stop();
    this.#rescue ??= this.#bootRescue();
    const { endpoint } = await this.#rescue;
    return getTree(await endpoint.session(), 'rescue', path, exclude);
  }

  /** What is of this VM alone goes before its end: the folders of its agent, whose like the next guest makes. */
  async seal(): Promise<string> {
    const { endpoint, machine } = this.#booted;
    await shutdownGuest(await endpoint.session(), GUEST_SEAL_MS, [dirname(IN_GUEST.state)]);
    machine.expectEnd();
    if (!(await endsWithin(machine, GUEST_SEAL_MS))) throw this.#unclean(`it did not end within ${GUEST_SEAL_MS} ms`);
    await this.#stop();
    const state = await readDiskState(this.#scratch);
    if (state !== 'clean') throw this.#unclean(`its disk is ${state}`);
    return this.#scratch;
  }

  #unclean(why: string): CodedError {
    return new CodedError('guest_unclean', `VM ${this.id} did not end in order: ${why}.`, {
      id: this.id,
      action: 'Destroy it; its disk is of no use to another VM.',
    });
  }

  destroy(): Promise<DestroyReport> {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy(): Promise<DestroyReport> {
    const { attemptMarker: marker, folder } = this.#spec;
    const { killed, left } = await this.#stop();
    const rescue = await this.#rescue?.catch(() => undefined);
    if (rescue !== undefined) {
      await rescue.machine.kill();
      left.push(...(await rescue.machine.release()));
      await rescue.endpoint.close();
    }
    await this.#booted.endpoint.close();
    const late = await killMarked(marker);
    if (!(await removeGuestFolder(folder))) left.push(folder);
    left.push(...findMarked(marker).map((pid) => `process ${pid}`));
    return { removed: left.length === 0, killed: killed + late.killed.length, left };
  }

  #stop(): Promise<Stopped> {
    this.#stopped ??= stop(this.#booted, this.#spec.attemptMarker);
    return this.#stopped;
  }
}

interface Stopped {
  readonly killed: number;
  readonly left: string[];
}

async function stop(booted: BootedMachine, marker: string): Promise<Stopped> {
  await stopMachine(booted);
  const { killed } = await killMarked(marker);
  return { killed: killed.length, left: [...(await booted.machine.release())] };
}
