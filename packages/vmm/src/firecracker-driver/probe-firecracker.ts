import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, open, readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '@firecrew/base';
import { CONTROLLERS } from '../cgroup/vm-limits.ts';
import type { OpenBootFiles } from '../machine/vm-assets.ts';
import type { DriverProbe } from '../port/driver.ts';
import { judgeVersion } from './features.ts';
import type { FirecrackerSettings } from './firecracker-settings.ts';
import type { JailerSettings } from './jailer-arguments.ts';
import { mountOptionsOf } from './mount-options.ts';

/** Time for `--version`, in `ms`. */
const VERSION_TIMEOUT_MS = 10_000;
const KSM_FILE = '/sys/kernel/mm/ksm/run';

/** Where the probe looks beside the settings. */
export interface ProbePlaces {
  readonly ksmFile?: string;
  readonly mountsFile?: string;
}

/**
 * Whether this host has what VMs need: the program in a version that the driver speaks to, a KVM device that may be opened, the jailer
 * with cgroup v2 and a fit place for jails, and files to boot. It starts no VM. Warnings are part of the text.
 */
export async function probeFirecracker(
  settings: FirecrackerSettings,
  openFiles: OpenBootFiles | undefined,
  vmRoot: string | undefined,
  places: ProbePlaces = {},
): Promise<DriverProbe> {
  const { program, jailer, kvmDevice } = settings;
  try {
    const version = await versionOf(program);
    await openReadWrite(kvmDevice);
    if (jailer !== undefined) await checkJailer(settings, jailer, vmRoot, places.mountsFile);
    if (openFiles !== undefined) await (await openFiles()).close();
    const confined = jailer === undefined ? 'without the jailer: for tests and laptops' : 'each in a jail of its own user';
    const warnings = await ksmWarning(places.ksmFile ?? KSM_FILE);
    return {
      available: true,
      isolation: 'vm',
      detail: `Firecracker ${version}, hardware virtualisation by kvm, ${confined}; own kernel, no network card${warnings}`,
    };
  } catch (error) {
    return { available: false, isolation: 'vm', detail: messageOf(error) };
  }
}

async function versionOf(program: string): Promise<string> {
  const text = await run(program, ['--version']);
  const version = /^Firecracker v(\S{1,64})/m.exec(text)?.[1] ?? '';
  const verdict = judgeVersion(version);
  if (!verdict.supported) throw new Error(`${program} cannot be used: version ${version || 'unknown'} (${verdict.reason})`);
  return version;
}

/** Opened and closed again: presence says nothing about the right to use it, and more than that is the VMM's to do. */
async function openReadWrite(device: string): Promise<void> {
  try {
    await (await open(device, constants.O_RDWR)).close();
  } catch (error) {
    throw new Error(`${device} cannot be opened for reading and writing: ${messageOf(error)}`);
  }
}

async function checkJailer(
  settings: FirecrackerSettings,
  jailer: JailerSettings,
  vmRoot: string | undefined,
  mountsFile = '/proc/self/mountinfo',
): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('the jailer needs root');
  const file = await realpath(settings.program);
  if (!basename(file).includes('firecracker')) throw new Error(`the jailer refuses ${file}: its name must hold "firecracker"`);
  await run(jailer.program, ['--version']);
  if (jailer.networkNamespace !== undefined) await access(jailer.networkNamespace);
  const controllers = await readFile(join(settings.cgroupRoot, 'cgroup.controllers'), 'utf8').catch(() => {
    throw new Error(`${settings.cgroupRoot} is no root of cgroup v2, which the limits of VMs need`);
  });
  const missing = CONTROLLERS.filter((name) => !controllers.split(/\s+/).includes(name));
  if (missing.length > 0) throw new Error(`cgroup v2 has no ${missing.join(', ')} controller here`);
  if (vmRoot === undefined) return;
  const options = mountOptionsOf(await readFile(mountsFile, 'utf8'), await realpath(vmRoot));
  const bad = ['nodev', 'noexec'].filter((name) => options.includes(name));
  if (bad.length > 0) throw new Error(`${vmRoot} is on a file system mounted ${bad.join(', ')}: no jail works there`);
}

/** Pages shared between VMs tell one of them what another holds. */
async function ksmWarning(file: string): Promise<string> {
  const state = await readFile(file, 'latin1').catch(() => '0');
  return state.trim() === '0'
    ? ''
    : `; WARNING: memory of VMs is merged (${file} is ${state.trim()}), which leaks between them: write 0 there`;
}

function run(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: VERSION_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 65_536, env: {} } as const;
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} does not run: ${stderr.trim() || messageOf(error).split('\n')[0]}`));
    });
  });
}
