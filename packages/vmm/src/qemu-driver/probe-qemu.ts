import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process';
import { messageOf } from '@firecrew/base';
import type { BootFiles } from '@firecrew/rootfs';
import type { Accelerator, MachineModel, OpenBootFiles } from '../machine/vm-assets.ts';
import { type VmCommand, vmCommand } from '../machine/vm-command.ts';
import type { DriverProbe, GuestOwner } from '../port/driver.ts';
import type { LentUser, VmUsers } from '../users/vm-users.ts';
import { machineArguments } from './qemu-arguments.ts';

/** Time for `--version`, in `ms`. */
const VERSION_TIMEOUT_MS = 10_000;
/** Time a machine without disks has to reach guest-init and to reset, in `ms`. Emulated it takes 2 to 4 s on an idle host. */
export const PROBE_BOOT_TIMEOUT_MS = 60_000;
const PROBE_MEMORY = '256M';
/** Characters of the console of a probe boot that are kept: far more than guest-init writes. */
const CONSOLE_CHARS = 1_048_576;
/** Who a user is lent to for the probe boot, in messages. */
const PROBE_ID = 'probe';

/** What the probe boot's console must hold: the first word of every line of guest-init. */
const INIT_MARK = 'firecrew-init';

/** What is asked of a host. */
export interface QemuProbe {
  readonly program: string;
  readonly accelerator: Accelerator;
  readonly machine: MachineModel;
  readonly openFiles: OpenBootFiles;
  /** Boot once; else only the emulator is asked. */
  readonly boots: boolean;
  /** Where the VM of the probe gets its user from; absent: it runs as this process. */
  readonly users?: Pick<VmUsers, 'take'> | undefined;
}

/**
 * Whether this host can run VMs: the emulator answers, every file of the store holds what its digest says, and a machine with the real kernel
 * comes as far as guest-init within its time, as a user that VMs have. An accelerator whose device opens and then hangs, or that their users may
 * not open, is found here, not in a mission.
 */
export async function probeQemu(asked: QemuProbe): Promise<DriverProbe> {
  const { program, accelerator, machine } = asked;
  // Its tables leave the kernel nothing but the processor's own clock to calibrate with, and an emulated one does not tell its rate.
  if (machine === 'microvm' && accelerator === 'tcg') return no('a microvm machine does not boot under emulation: use q35, or kvm');
  const version = await readVersion(program);
  if (!version.ended) return no(`${program} does not run: ${version.text}`);
  const name = /version ([0-9.]+)/.exec(version.text)?.[1] ?? 'of unknown version';
  const kind = accelerator === 'tcg' ? 'emulated processor, slow' : `hardware virtualisation by ${accelerator}`;
  const boot = asked.boots ? await probeBoot(asked) : { booted: true, detail: '' };
  if (!boot.booted) return no(`QEMU ${name} ${boot.detail}`);
  return { available: true, isolation: 'vm', detail: `QEMU ${name}, ${kind}${boot.detail}; own kernel, no network card` };
}

function no(detail: string): DriverProbe {
  return { available: false, isolation: 'vm', detail };
}

interface ProbeBoot {
  readonly booted: boolean;
  /** Follows the version. */
  readonly detail: string;
}

async function probeBoot(asked: QemuProbe): Promise<ProbeBoot> {
  let files: BootFiles;
  try {
    files = await asked.openFiles();
  } catch (error) {
    return { booted: false, detail: `has nothing to boot: ${messageOf(error)}` };
  }
  let user: LentUser | undefined;
  try {
    user = await asked.users?.take(PROBE_ID);
    return await bootOnce(asked, files, user?.owner);
  } catch (error) {
    return { booted: false, detail: `could not be tried: ${messageOf(error)}` };
  } finally {
    user?.release();
    await files.close();
  }
}

async function bootOnce({ program, accelerator, machine }: QemuProbe, files: BootFiles, owner: GuestOwner | undefined): Promise<ProbeBoot> {
  const device = accelerator === 'kvm' ? '/dev/kvm' : undefined;
  const command = await vmCommand(program, probeArguments({ accelerator, machine }), owner, device);
  const from = performance.now();
  const console = await runMachine(command, [files.kernel.handle.fd, files.initrd.handle.fd]);
  if (!console.includes(INIT_MARK))
    return { booted: false, detail: `does not boot a ${machine} machine with ${accelerator}: ${console.slice(-300)}` };
  return { booted: true, detail: `, probe boot ${((performance.now() - from) / 1000).toFixed(1)} s` };
}

/** No disks: guest-init says that it misses them and resets. Kernel and initrd are descriptors, as for a VM: its user needs no way to their folders. */
function probeArguments(model: Pick<QemuProbe, 'accelerator' | 'machine'>): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-nic', 'none', '-no-reboot'],
    ...machineArguments(model),
    ...['-m', PROBE_MEMORY, '-kernel', '/proc/self/fd/3', '-initrd', '/proc/self/fd/4'],
    ...[
      '-append',
      'console=ttyS0 quiet panic=-1 reboot=k,force no_timer_check',
      '-chardev',
      'stdio,id=console,signal=off',
      '-serial',
      'chardev:console',
    ],
  ];
}

function readVersion(program: string): Promise<{ ended: boolean; text: string }> {
  return new Promise((resolve) => {
    const options = { timeout: VERSION_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 65_536, env: {} } as const;
    execFile(program, ['--version'], options, (error, stdout) => {
      if (error === null) return resolve({ ended: true, text: stdout });
      resolve({ ended: false, text: messageOf(error).split('\n')[0] ?? '' });
    });
  });
}

/** Runs a machine to its end, which it gets at the latest after its time. Gives the end of what console and QEMU said, and how it ended. */
function runMachine({ program, args, user }: VmCommand, passed: readonly number[]): Promise<string> {
  return new Promise((resolve) => {
    const options = { cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'pipe', ...passed], ...user } satisfies SpawnOptions;
    const child: ChildProcess = spawn(program, args, options);
    let text = '';
    let messages = '';
    let timedOut = false;
    child.stdout?.on('data', (part: Buffer) => {
      text = (text + part.toString('latin1')).slice(-CONSOLE_CHARS);
    });
    child.stderr?.on('data', (part: Buffer) => {
      messages = (messages + part.toString('latin1')).slice(-CONSOLE_CHARS);
    });
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, PROBE_BOOT_TIMEOUT_MS);
    child.once('error', (error) => {
      messages = messageOf(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      const end = timedOut ? `no end within ${PROBE_BOOT_TIMEOUT_MS} ms` : (signal ?? `exit ${code ?? 'unknown'}`);
      resolve(`${text}${messages.trim()} (${end})`);
    });
  });
}
