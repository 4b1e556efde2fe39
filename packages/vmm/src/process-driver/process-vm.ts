import { CodedError, codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import type { Isolation } from '@firecrew/protocol';
import { shutdownGuest } from '../guest-client/simple-requests.ts';
import type { GuestEndpoint } from '../guest-endpoint/guest-endpoint.ts';
import type { BootSpec, DestroyReport, GuestPaths, OutgoingTree, TreeExclusion, Vm, VmExit } from '../port/driver.ts';
import { findMarked, killMarked, signalProcess } from '../processes/marked-processes.ts';
import type { GuestFolder } from './guest-layout.ts';
import { removeGuestFolder } from './remove-folder.ts';
import { rescueFromFolder } from './rescue-tree.ts';
import type { GuestProcess } from './start-guest.ts';

/** Time the guest agent has to end by itself, in `ms`. */
export const SHUTDOWN_GRACE_MS = 3000;

/** One sandbox of the process driver, or one agent beside the host's own processes. */
export class ProcessVm implements Vm {
  readonly id: string;
  readonly isolation: Isolation;
  readonly guestPaths: GuestPaths;
  readonly socketPath: string;
  readonly exited: Promise<VmExit>;
  readonly #spec: BootSpec;
  readonly #places: GuestFolder;
  readonly #endpoint: GuestEndpoint;
  readonly #process: GuestProcess;
  #stopped: Promise<number> | undefined;
  #destroyed: Promise<DestroyReport> | undefined;

  constructor(spec: BootSpec, isolation: Isolation, places: GuestFolder, endpoint: GuestEndpoint, guest: GuestProcess) {
    this.id = spec.vmId;
    this.isolation = isolation;
    const { workspace, home, tmp, agentDir, taskDir } = guest.paths;
    this.guestPaths = { workspace, home, tmp, agentDir, taskDir };
    this.socketPath = places.socketPath;
    this.exited = guest.exited;
    this.#spec = spec;
    this.#places = places;
    this.#endpoint = endpoint;
    this.#process = guest;
    void guest.exited.then(({ code, signal }) => {
      endpoint.fail(
        new CodedError('vm_exited', `The guest of VM ${spec.vmId} ended (${signal ?? `exit ${code ?? 'unknown'}`}).`, {
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
    return this.#endpoint.session(timeoutMs);
  }

  async rescue(path: string, exclude?: TreeExclusion): Promise<OutgoingTree> {
    await this.#stop();
    return rescueFromFolder(this.id, this.#places.folder, path, exclude);
  }

  destroy(): Promise<DestroyReport> {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy(): Promise<DestroyReport> {
    const killed = await this.#stop();
    await this.#endpoint.close();
    const isRemoved = await removeGuestFolder(this.#places.folder);
    const living = findMarked(this.#spec.attemptMarker);
    const left = [...living.map((pid) => `process ${pid}`), ...(isRemoved ? [] : [this.#places.folder])];
    return { removed: left.length === 0, killed, left };
  }

  #stop(): Promise<number> {
    this.#stopped ??= this.#stopOnce();
    return this.#stopped;
  }

  async #stopOnce(): Promise<number> {
    const { liveSession } = this.#endpoint;
    if (liveSession !== undefined) await askToEnd(liveSession, this.exited);
    this.#process.lifeline.destroy();
    if (await isRunning(this.exited)) signalProcess(-this.#process.pid, 'SIGKILL');
    const { killed } = await killMarked(this.#spec.attemptMarker);
    return killed.length;
  }
}

async function askToEnd(session: LinkSession, exited: Promise<VmExit>): Promise<void> {
  try {
    await shutdownGuest(session, SHUTDOWN_GRACE_MS);
  } catch (error) {
    // It may end before its answer has left, or not listen at all; either way it is killed next.
    if (codeOf(error) === undefined) throw error;
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, SHUTDOWN_GRACE_MS);
  });
  await Promise.race([exited, late]);
  clearTimeout(timer);
}

async function isRunning(exited: Promise<VmExit>): Promise<boolean> {
  return (await Promise.race([exited, Promise.resolve(undefined)])) === undefined;
}
