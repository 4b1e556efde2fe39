import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type Server, type Socket } from 'node:net';
import { CodedError, messageOf } from '@firecrew/base';
import { checkSocketPath } from '@firecrew/link';
import { wasOutOfMemory } from '../cgroup/vm-cgroup.ts';
import { ConsoleTail } from '../machine/console-tail.ts';
import type { Machine } from '../machine/machine.ts';
import type { VmFiles } from '../machine/vm-assets.ts';
import { vmCommand } from '../machine/vm-command.ts';
import { giveTo } from '../machine/vm-folder.ts';
import type { GuestOwner, VmExit } from '../port/driver.ts';
import { ATTEMPT_VARIABLE } from '../processes/marked-processes.ts';
import { describeEnd } from './describe-end.ts';
import { type QemuMachine, qemuArguments } from './qemu-arguments.ts';
import { QmpClient } from './qmp-client.ts';

/** Time from the start of QEMU until it has dialled its monitor, in `ms`. */
export const QEMU_START_TIMEOUT_MS = 15_000;
/** Bytes of QEMU's own messages that are kept. */
const MESSAGE_BYTES = 4096;
/** Lines at the end of a console in which the reason of an end is looked for. */
const CAUSE_LINES = 40;

/** Keys by which the guest's pid 1 is asked to end. */
const CTRL_ALT_DEL = { keys: ['ctrl', 'alt', 'delete'].map((data) => ({ type: 'qcode', data })) };

/** What one QEMU is started with. */
export interface QemuLaunch {
  readonly program: string;
  readonly files: VmFiles;
  readonly machine: Omit<QemuMachine, PassedName>;
  readonly owner: GuestOwner | undefined;
  readonly attemptMarker: string;
  /** The group that it joins before it runs; undefined for none. */
  readonly group: VmGroup | undefined;
}

/** The group of one QEMU. */
export interface VmGroup {
  readonly path: string;
  /** Removes it once nothing runs there; false when it is still there. */
  readonly remove: () => Promise<boolean>;
}

/** Starts QEMU as the VM's user and waits for its monitor. Rejects with `qemu_failed`; nothing is then left running. */
export async function startQemu(launch: QemuLaunch): Promise<Machine> {
  const { machine } = launch;
  checkSocketPath(machine.qmpSocket);
  const monitor = await listenOnce(machine.qmpSocket, launch.owner);
  try {
    const device = machine.accelerator === 'kvm' ? '/dev/kvm' : undefined;
    const passed = passFiles(launch.files);
    const wanted = qemuArguments({ ...machine, ...passed.paths });
    const { program, args, user } = await vmCommand(launch.program, wanted, launch.owner, device, launch.group?.path);
    const child = spawn(program, args, {
      cwd: '/',
      env: { [ATTEMPT_VARIABLE]: launch.attemptMarker },
      stdio: ['ignore', 'pipe', 'pipe', ...passed.fds],
      detached: true,
      ...user,
    });
    return await whenUp(child, monitor, launch);
  } finally {
    monitor.server.close();
  }
}

async function whenUp(
  child: ChildProcess,
  monitor: { readonly connected: Promise<Socket> },
  { group, machine }: QemuLaunch,
): Promise<Machine> {
  const tail = new ConsoleTail();
  child.stdout?.on('data', (part: Buffer) => tail.add(part));
  let messages = '';
  child.stderr?.on('data', (part: Buffer) => {
    messages = (messages + part.toString('latin1')).slice(-MESSAGE_BYTES);
  });
  let qmp: QmpClient | undefined;
  const ended = new Promise<VmExit>((resolve) => {
    // After `close` all that it said on console and monitor is read.
    child.once('close', (code, signal) => resolve({ code, signal }));
    child.once('error', (error) => {
      messages = messageOf(error);
      resolve({ code: null, signal: null });
    });
  });
  const exited = ended.then((exit) => {
    const cause = describeEnd(qmp?.events ?? [], exit, group !== undefined && wasOutOfMemory(group.path), tail.lines(CAUSE_LINES));
    return { ...exit, cause, detail: `${cause}${describeMessages(messages)}${describeConsole(tail)}` };
  });
  const early = exited.then((exit) => {
    throw failed(`it ended (${exit.signal ?? `exit ${exit.code ?? 'unknown'}`}): ${messages.trim() || 'it said nothing'}`);
  });
  early.catch(() => undefined);
  try {
    const client = new QmpClient(await Promise.race([monitor.connected, early, late()]));
    qmp = client;
    await client.start();
    return {
      console: tail,
      exited,
      // The monitor tells the ends apart by itself.
      expectEnd: () => undefined,
      // The other model has no keyboard.
      ...(machine.machine === 'q35' ? { askToEnd: () => client.execute('send-key', CTRL_ALT_DEL).then(() => undefined) } : {}),
      askToQuit: () => client.execute('quit').then(() => undefined),
      kill: async () => {
        child.kill('SIGKILL');
        await exited;
      },
      release: async () => {
        client.close();
        return group === undefined || (await group.remove()) ? [] : [group.path];
      },
    };
  } catch (error) {
    child.kill('SIGKILL');
    await ended;
    throw error;
  }
}

function describeMessages(messages: string): string {
  const text = messages.replace(/[^\x20-\x7e]+/g, ' ').trim();
  return text === '' ? '' : `; QEMU said: ${text.slice(-400)}`;
}

function describeConsole(tail: ConsoleTail): string {
  const lines = tail.lines(6);
  return lines.length === 0 ? '' : `; the console ends with: ${lines.join(' | ')}`;
}

function late(): Promise<never> {
  return new Promise((_resolve, reject) => {
    setTimeout(() => reject(failed(`it did not open its monitor within ${QEMU_START_TIMEOUT_MS} ms`)), QEMU_START_TIMEOUT_MS).unref();
  });
}

/** Files of the stores travel as descriptors, in this order from 3 on: the VM's user needs no way to their folders. */
const PASSED = ['kernel', 'base', 'payload', 'layer'] as const;
type PassedName = (typeof PASSED)[number];
const FIRST_PASSED_FD = 3;

function passFiles(files: VmFiles): { readonly fds: readonly number[]; readonly paths: Pick<QemuMachine, PassedName> } {
  const path = (name: PassedName): string => `/proc/self/fd/${FIRST_PASSED_FD + PASSED.indexOf(name)}`;
  const { layer } = files;
  return {
    fds: PASSED.flatMap((name) => files[name]?.handle.fd ?? []),
    paths: { kernel: path('kernel'), base: path('base'), payload: path('payload'), layer: layer === undefined ? undefined : path('layer') },
  };
}

async function listenOnce(path: string, owner: GuestOwner | undefined): Promise<{ server: Server; connected: Promise<Socket> }> {
  const server = createServer();
  server.maxConnections = 1;
  const connected = new Promise<Socket>((resolve) => {
    server.once('connection', resolve);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(path, resolve);
  });
  await giveTo(owner, path, 0o600);
  return { server, connected };
}

function failed(why: string): CodedError {
  return new CodedError('qemu_failed', `QEMU did not start: ${why}.`, {
    action: 'Run `firecrew doctor`: it boots one and says what is missing.',
  });
}
