import { readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { MODEL_PORT, PROXY_PORT } from '@firecrew/protocol';
import { writeCpio } from '@firecrew/rootfs';
import { guestHealth } from '../guest-client/simple-requests.ts';
import { type GuestPlace, guestConfig, searchPath } from '../guest-config/guest-config.ts';
import { GuestEndpoint } from '../guest-endpoint/guest-endpoint.ts';
import type { BootSpec } from '../port/driver.ts';
import { guestPaths, IN_GUEST } from '../process-driver/guest-layout.ts';
import type { QemuMachine } from './qemu-arguments.ts';
import { type QemuProcess, startQemu } from './start-qemu.ts';
import { GUEST_USER, IN_VM, type VmAssets } from './vm-assets.ts';
import { giveTo } from './vm-folder.ts';

/** One QEMU with its link up. */
export interface BootedGuest {
  readonly endpoint: GuestEndpoint;
  readonly qemu: QemuProcess;
}

/** What one boot needs beside the spec. */
export interface GuestBoot {
  readonly program: string;
  readonly assets: VmAssets;
  readonly machine: Omit<QemuMachine, 'initrd'>;
  /** The VM's own initrd; written here. */
  readonly initrd: string;
  /** From the start of QEMU to the guest agent's first answer, in `ms`. */
  readonly timeoutMs: number;
}

/**
 * Boots a VM and waits until its guest agent has answered. Rejects with `vm_boot_hung`, `vm_ended_at_boot`, `qemu_failed` or
 * `vm_file_missing`; nothing of it runs then.
 */
export async function bootGuest(spec: BootSpec, boot: GuestBoot): Promise<BootedGuest> {
  const endpoint = await GuestEndpoint.open(spec, boot.machine.linkSocket, spec.owner, true);
  let qemu: QemuProcess | undefined;
  try {
    await writeInitrd(spec, boot, endpoint.secret);
    qemu = await startQemu({
      program: boot.program,
      machine: { ...boot.machine, initrd: boot.initrd },
      owner: spec.owner,
      attemptMarker: spec.attemptMarker,
    });
    const session = await firstSession(spec, boot, endpoint, qemu);
    await guestHealth(session);
    return { endpoint, qemu };
  } catch (error) {
    if (qemu !== undefined) await killQemu(qemu);
    await endpoint.close();
    throw error;
  }
}

/** Ends a QEMU at once and waits until it is gone. */
export async function killQemu(qemu: QemuProcess): Promise<void> {
  try {
    process.kill(qemu.pid, 'SIGKILL');
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error;
  }
  await qemu.exited;
}

async function firstSession(spec: BootSpec, boot: GuestBoot, endpoint: GuestEndpoint, qemu: QemuProcess): Promise<LinkSession> {
  const ended = qemu.exited.then((exit) => {
    throw new CodedError('vm_ended_at_boot', `VM ${spec.vmId} ended before its guest agent answered: ${exit.detail ?? exit.cause}.`, {
      id: spec.vmId,
      action: 'The last lines of its console name the stage; `firecrew image list` says what it was made of.',
    });
  });
  ended.catch(() => undefined);
  const up = endpoint.session(boot.timeoutMs).catch((cause: unknown) => {
    if (codeOf(cause) !== 'link_not_up') throw cause;
    const lines = qemu.console.lines(6).join(' | ');
    throw new CodedError('vm_boot_hung', `VM ${spec.vmId} did not come up within ${boot.timeoutMs} ms; its console ends with: ${lines}`, {
      id: spec.vmId,
      action: 'Try again on a less busy host, or raise the boot time limit of the node.',
      cause,
    });
  });
  return await Promise.race([up, ended]);
}

/** The shared initrd and, behind it, this VM's configuration: on no disk of the guest, on no command line, gone when its root is switched. */
async function writeInitrd(spec: BootSpec, boot: GuestBoot, secret: Uint8Array): Promise<void> {
  const config = `${JSON.stringify(guestConfig(spec, placeOf(spec, boot.assets), secret))}\n`;
  const shared = await readFile(boot.assets.initrd).catch((cause: unknown) => {
    throw new CodedError('vm_file_missing', `The initrd ${boot.assets.initrd} cannot be read: ${messageOf(cause)}`, {
      id: boot.assets.initrd,
      action: 'Build it again with `firecrew image kernel`.',
      cause,
    });
  });
  const own = writeCpio([
    { path: 'firecrew', mode: 0o40700 },
    { path: 'firecrew/agent.json', mode: 0o100600, content: Buffer.from(config) },
  ]);
  const padding = Buffer.alloc((4 - (shared.length % 4)) % 4);
  await writeFile(boot.initrd, Buffer.concat([shared, padding, own]), { mode: 0o600 });
  await giveTo(spec.owner, boot.initrd, 0o400);
}

function placeOf(spec: BootSpec, assets: VmAssets): GuestPlace {
  const { workspace, home, agentDir, taskDir } = IN_GUEST;
  return {
    paths: guestPaths('/'),
    socketPath: IN_VM.socketPath,
    ports: { proxy: PROXY_PORT, model: MODEL_PORT },
    caBundle: spec.caBundle === null ? null : IN_VM.caBundle,
    lifeline: false,
    resync: true,
    folders: [workspace, home, agentDir, taskDir, dirname(IN_VM.caBundle)],
    // Root of the guest is the agent's alone: its secret and its link are no command's.
    user: GUEST_USER,
    searchPath: searchPath(assets.path, IN_VM.node),
  };
}
