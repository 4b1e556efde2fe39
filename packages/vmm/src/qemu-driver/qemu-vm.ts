import { CodedError, codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { shutdownGuest } from '../guest-client/simple-requests.ts';
import { getTree } from '../guest-client/transfers.ts';
import type { BootSpec, DestroyReport, GuestPaths, OutgoingTree, TreeExclusion, Vm, VmExit } from '../port/driver.ts';
import { guestPaths, IN_GUEST } from '../process-driver/guest-layout.ts';
import { removeGuestFolder } from '../process-driver/remove-folder.ts';
import { findMarked, killMarked } from '../processes/marked-processes.ts';
import { type BootedGuest, killQemu } from './boot-guest.ts';
import type { VmFolder } from './vm-folder.ts';

/** Time a guest has to sync its disk and reset after it was asked to, in `ms`; emulation is slow. */
export const GUEST_SHUTDOWN_MS = 5000;

/** Boots the VM that reads the dead one's disk. */
export type BootRescue = () => Promise<BootedGuest>;

/** One VM under QEMU. */
export class QemuVm implements Vm {
  readonly id: string;
  readonly isolation = 'vm' as const;
  readonly guestPaths: GuestPaths;
  readonly socketPath: string;
  readonly exited: Promise<VmExit>;
  readonly #spec: BootSpec;
  readonly #places: VmFolder;
  readonly #guest: BootedGuest;
  readonly #bootRescue: BootRescue;
  #rescue: Promise<BootedGuest> | undefined;
  #stopped: Promise<number> | undefined;
  #destroyed: Promise<DestroyReport> | undefined;

  constructor(spec: BootSpec, places: VmFolder, guest: BootedGuest, bootRescue: BootRescue) {
    this.id = spec.vmId;
    const { workspace, home, tmp, agentDir, taskDir } = guestPaths('/');
    this.guestPaths = { workspace, home, tmp, agentDir, taskDir };
    this.socketPath = places.linkSocket;
    this.exited = guest.qemu.exited;
    this.#spec = spec;
    this.#places = places;
    this.#guest = guest;
    this.#bootRescue = bootRescue;
    void guest.qemu.exited.then(({ detail }) => {
      guest.endpoint.fail(
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
    return this.#guest.endpoint.session(timeoutMs);
  }

  /** Reads the disk in a second VM of ours, which executes nothing of it. One rescue VM serves all calls until `destroy`. */
  async rescue(path: string, exclude?: TreeExclusion): Promise<OutgoingTree> {
    const { workspace } = IN_GUEST;
    const parts = path.split('/').slice(1);
    // Only the delivered folder is ever read back; the rescue agent opens it by name, and a link in its place is refused there.
    if (!path.startsWith('/') || parts.some((part) => part === '' || part === '.' || part === '..') || path !== workspace) {
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

  destroy(): Promise<DestroyReport> {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy(): Promise<DestroyReport> {
    let killed = await this.#stop();
    const rescue = await this.#rescue?.catch(() => undefined);
    if (rescue !== undefined) {
      await killQemu(rescue.qemu);
      rescue.qemu.qmp.close();
      await rescue.endpoint.close();
    }
    await this.#guest.endpoint.close();
    killed += (await killMarked(this.#spec.attemptMarker)).killed.length;
    const isRemoved = await removeGuestFolder(this.#places.folder);
    const left = [...findMarked(this.#spec.attemptMarker).map((pid) => `process ${pid}`), ...(isRemoved ? [] : [this.#places.folder])];
    return { removed: left.length === 0, killed, left };
  }

  #stop(): Promise<number> {
    this.#stopped ??= this.#stopOnce();
    return this.#stopped;
  }

  /** Asks the guest first, so that its disk is synced; one that does not go within the grace is killed. */
  async #stopOnce(): Promise<number> {
    const { endpoint, qemu } = this.#guest;
    const { liveSession } = endpoint;
    if (liveSession !== undefined) {
      await askToEnd(liveSession);
      if (!(await endsWithin(this.exited, GUEST_SHUTDOWN_MS))) await killQemu(qemu);
    } else await killQemu(qemu);
    qemu.qmp.close();
    const { killed } = await killMarked(this.#spec.attemptMarker);
    return killed.length;
  }
}

async function askToEnd(session: LinkSession): Promise<void> {
  try {
    await shutdownGuest(session, GUEST_SHUTDOWN_MS);
  } catch (error) {
    // It may end before its answer has left, or not listen at all; either way it is killed next.
    if (codeOf(error) === undefined) throw error;
  }
}

async function endsWithin(exited: Promise<VmExit>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const ended = await Promise.race([exited.then(() => true), late]);
  clearTimeout(timer);
  return ended;
}
