import { writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { MODEL_PORT, PROXY_PORT } from '@firecrew/protocol';
import { type BootFiles, writeCpio } from '@firecrew/rootfs';
import { noteGroup } from '../cgroup/vm-cgroup.ts';
import { GuestClock } from '../clock/guest-clock.ts';
import { type GuestPlace, guestConfig, searchPath } from '../guest-config/guest-config.ts';
import { firstAnswer } from '../guest-endpoint/first-answer.ts';
import { GuestEndpoint } from '../guest-endpoint/guest-endpoint.ts';
import type { BootSpec, VmExit } from '../port/driver.ts';
import { ETC_FILES, guestPaths, IN_GUEST } from '../process-driver/guest-layout.ts';
import type { ConsoleTail } from './console-tail.ts';
import type { BootedMachine, Machine } from './machine.ts';
import { GUEST_USER, IN_VM } from './vm-assets.ts';
import { giveTo } from './vm-folder.ts';

/** guest-init's line once the guest agent runs; only the link is missing then. */
const AGENT_STARTED = /^firecrew-init: \d+ ms agent started as process \d+$/;
/** Lines at the end of a console in which it is looked for. */
const AGENT_LINES = 100;

/** What one boot needs beside the spec. */
export interface MachineBoot {
  readonly files: Pick<BootFiles, 'initrd' | 'path' | 'environment'>;
  /** Host path of the socket at which the guest's dials arrive. */
  readonly linkSocket: string;
  /** The stream behind that socket outlives the guest agent. */
  readonly resync: boolean;
  /** The VM's own initrd; written here. */
  readonly initrd: string;
  /** From the start of the VMM to the guest agent's first answer, in `ms`. */
  readonly timeoutMs: number;
  /** Its group of cgroup v2; undefined for none. */
  readonly group: string | undefined;
  /** Starts the VMM; when it rejects nothing of it runs. */
  readonly start: () => Promise<Machine>;
}

/**
 * Boots a VM and waits until its guest agent has answered. Rejects with `vm_boot_hung`, `vm_link_never_up`, `vm_ended_at_boot`,
 * `vm_panicked_at_boot`, `vm_out_of_memory_at_boot` or what the start of the VMM rejects with; nothing of it runs then.
 */
export async function bootMachine(spec: BootSpec, boot: MachineBoot): Promise<BootedMachine> {
  const clock = new GuestClock();
  const served = { ...spec, onSession: (session: LinkSession) => clock.watch(session) };
  const endpoint = await GuestEndpoint.open(served, boot.linkSocket, spec.owner, boot.resync);
  let machine: Machine | undefined;
  try {
    await writeInitrd(spec, boot, endpoint.secret);
    if (boot.group !== undefined) await noteGroup(spec.folder, boot.group);
    machine = await boot.start();
    const ended = machine.exited.then((exit) => {
      throw endedAtBoot(spec, exit);
    });
    ended.catch(() => undefined);
    await Promise.race([waitForAgent(spec, boot, endpoint, machine, clock), ended]);
    return { endpoint, machine };
  } catch (error) {
    await machine?.kill();
    await machine?.release();
    await endpoint.close();
    throw error;
  }
}

async function waitForAgent(
  spec: BootSpec,
  boot: MachineBoot,
  endpoint: GuestEndpoint,
  machine: Machine,
  clock: GuestClock,
): Promise<void> {
  const { timeoutMs } = boot;
  // The host's certificates are of its time; a look is an answer of the guest agent too.
  const ask = (session: LinkSession): Promise<void> => clock.look(session);
  await firstAnswer(endpoint, { timeoutMs, ask, onLinkUp: spec.onLinkUp }).catch((cause: unknown) => {
    if (codeOf(cause) !== 'link_not_up') throw cause;
    throw bootHung(spec, timeoutMs, machine.console, cause);
  });
}

function endedAtBoot({ vmId, limits }: BootSpec, { cause, detail = 'no reason is known' }: VmExit): CodedError {
  const message = `VM ${vmId} ended before its guest agent answered: ${detail}.`;
  if (cause === 'guest_out_of_memory') {
    const action = `Give it more memory than ${limits.memoryMib} MiB.`;
    return new CodedError('vm_out_of_memory_at_boot', message, { id: vmId, action });
  }
  const action = 'The last lines of its console name the stage; `firecrew image list` says what it was made of.';
  if (cause === 'guest_panic') return new CodedError('vm_panicked_at_boot', message, { id: vmId, action });
  return new CodedError('vm_ended_at_boot', message, { id: vmId, action });
}

function bootHung(spec: BootSpec, timeoutMs: number, console: ConsoleTail, cause: unknown): CodedError {
  const lines = console.lines(6).join(' | ');
  if (console.lines(AGENT_LINES).some((line) => AGENT_STARTED.test(line))) {
    const message = `The agent of VM ${spec.vmId} started and did not answer within ${timeoutMs} ms; its console ends with: ${lines}`;
    const action = 'Build the payload again with `firecrew image payload`: it must be of the version of this node.';
    return new CodedError('vm_link_never_up', message, { id: spec.vmId, action, cause });
  }
  return new CodedError('vm_boot_hung', `VM ${spec.vmId} did not come up within ${timeoutMs} ms; its console ends with: ${lines}`, {
    id: spec.vmId,
    action: 'Try again on a less busy host, or raise the boot time limit of the node.',
    cause,
  });
}

/** The shared initrd and, behind it, this VM's configuration: on no disk of the guest, on no command line, gone when its root is switched. */
async function writeInitrd(spec: BootSpec, boot: MachineBoot, secret: Uint8Array): Promise<void> {
  const config = `${JSON.stringify(guestConfig(spec, placeOf(spec, boot), secret))}\n`;
  const { handle, sizeBytes } = boot.files.initrd;
  const shared = Buffer.alloc(sizeBytes);
  await handle.read(shared, 0, sizeBytes, 0);
  const own = writeCpio([
    { path: 'firecrew', mode: 0o40700 },
    { path: 'firecrew/agent.json', mode: 0o100600, content: Buffer.from(config) },
  ]);
  const padding = Buffer.alloc((4 - (shared.length % 4)) % 4);
  await writeFile(boot.initrd, Buffer.concat([shared, padding, own]), { mode: 0o600 });
  await giveTo(spec.owner, boot.initrd, 0o400);
}

function placeOf(spec: BootSpec, { files, resync }: MachineBoot): GuestPlace {
  const { workspace, home, agentDir, taskDir } = IN_GUEST;
  return {
    paths: guestPaths('/'),
    socketPath: IN_VM.socketPath,
    ports: { proxy: PROXY_PORT, model: MODEL_PORT },
    caBundle: spec.caBundle === null ? null : IN_VM.caBundle,
    lifeline: false,
    resync,
    folders: [workspace, home, agentDir, taskDir, dirname(IN_VM.caBundle)],
    // Root of the guest is the agent's alone: its secret and its link are no command's.
    user: GUEST_USER,
    // Engines of containers write these at their start, so images come without them.
    etc: ETC_FILES,
    searchPath: searchPath(files.path, IN_VM.node),
    imageEnvironment: files.environment,
  };
}
