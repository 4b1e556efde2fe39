import { execFile } from 'node:child_process';
import { messageOf } from '@firecrew/base';
import type { BootFiles } from '@firecrew/rootfs';
import type { Accelerator, MachineModel, OpenBootFiles } from '../machine/vm-assets.ts';
import type { DriverProbe } from '../port/driver.ts';
import { machineArguments } from './qemu-arguments.ts';

/** Time for `--version`, in `ms`. */
const VERSION_TIMEOUT_MS = 10_000;
/** Time a machine without disks has to reach guest-init and to reset, in `ms`. Emulated it takes 2 to 4 s on an idle host. */
export const PROBE_BOOT_TIMEOUT_MS = 60_000;
const PROBE_MEMORY = '256M';

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
}

/**
 * Whether this host can run VMs: the emulator answers, every file of the store holds what its digest says, and a machine with the real kernel
 * comes as far as guest-init within its time. An accelerator whose device opens and then hangs is found here, not in a mission.
 */
export async function probeQemu({ program, accelerator, machine, openFiles, boots }: QemuProbe): Promise<DriverProbe> {
  const no = (detail: string): DriverProbe => ({ available: false, isolation: 'vm', detail });
  // Its tables leave the kernel nothing but the processor's own clock to calibrate with, and an emulated one does not tell its rate.
  if (machine === 'microvm' && accelerator === 'tcg') return no('a microvm machine does not boot under emulation: use q35, or kvm');
  const version = await run(program, ['--version'], VERSION_TIMEOUT_MS);
  if (!version.ended) return no(`${program} does not run: ${version.text}`);
  const name = /version ([0-9.]+)/.exec(version.text)?.[1] ?? 'of unknown version';
  const kind = accelerator === 'tcg' ? 'emulated processor, slow' : `hardware virtualisation by ${accelerator}`;
  const yes = (more: string): DriverProbe => ({
    available: true,
    isolation: 'vm',
    detail: `QEMU ${name}, ${kind}${more}; own kernel, no network card`,
  });
  if (!boots) return yes('');
  let files: BootFiles;
  try {
    files = await openFiles();
  } catch (error) {
    return no(`there is nothing to boot: ${messageOf(error)}`);
  }
  const from = performance.now();
  const boot = await run(program, probeArguments({ accelerator, machine }, files), PROBE_BOOT_TIMEOUT_MS);
  await files.close();
  if (!boot.text.includes(INIT_MARK))
    return no(`QEMU ${name} does not boot a ${machine} machine with ${accelerator}: ${boot.text.slice(-300)}`);
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  return yes(`, probe boot ${seconds} s`);
}

/** No disks: guest-init says that it misses them and resets. */
function probeArguments(model: Pick<QemuProbe, 'accelerator' | 'machine'>, files: BootFiles): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-nic', 'none', '-no-reboot'],
    ...machineArguments(model),
    ...['-m', PROBE_MEMORY, '-kernel', files.kernel.path, '-initrd', files.initrd.path],
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

function run(program: string, args: readonly string[], timeoutMs: number): Promise<{ ended: boolean; text: string }> {
  return new Promise((resolve) => {
    const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: 1_048_576, env: {} } as const;
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve({ ended: true, text: stdout });
      const why = error.killed === true ? `no end within ${timeoutMs} ms` : messageOf(error).split('\n')[0];
      resolve({ ended: false, text: `${stdout}${stderr.trim()} (${why})` });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end();
  });
}
