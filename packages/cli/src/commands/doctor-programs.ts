import { execFileSync } from 'node:child_process';
import { messageOf } from '@firecrew/base';
import { openExistingHome } from '../home/open-home.ts';
import { readSettings } from '../settings/read-settings.ts';
import { type CommandContext, homePathOf } from './context.ts';
import type { Finding } from './doctor.ts';

const PROBE_TIMEOUT_MS = 20_000;
const INSTALL_VM_TOOLS = 'tools/install-vm-tools.sh';

/** A program, how it says its version, and what is not possible without it. */
export interface ProgramNeed {
  readonly name: string;
  readonly args: readonly string[];
  readonly missing: Finding['state'];
  readonly use: string;
  readonly fix: string;
}

/** Programs that make disks, and how each is asked whether it runs. */
const IMAGE_TOOLS: readonly (readonly [string, readonly string[]])[] = [
  ['mke2fs', ['-V']],
  ['tar2sqfs', ['--version']],
  ['tar', ['--version']],
  ['xz', ['--version']],
];

/** Whether a program runs; it is started once. */
export function probeProgram(context: CommandContext, { name, args, missing, use, fix }: ProgramNeed): Finding {
  const ran = start(context, name, args);
  if (ran.ok) return { check: name, state: 'ok', detail: ran.text, fix: null };
  return { check: name, state: missing, detail: `not usable, needed for ${use}: ${ran.text}`, fix };
}

/** Whether QEMU runs, and what makes disks of VMs and images. A problem where the settings name the driver, else a warning. */
export function probeVmPrograms(context: CommandContext): Finding[] {
  const { program, isWanted } = qemuOf(context);
  const missing = isWanted ? 'problem' : 'warning';
  const use = 'microVMs of the qemu driver';
  const qemu = probeProgram(context, { name: program, args: ['--version'], missing, use, fix: INSTALL_VM_TOOLS });
  const broken = IMAGE_TOOLS.flatMap(([name, args]) => {
    const ran = start(context, name, args);
    return ran.ok ? [] : [`${name} (${ran.text})`];
  });
  const names = IMAGE_TOOLS.map(([name]) => name).join(', ');
  const tools: Finding =
    broken.length === 0
      ? { check: 'image tools', state: 'ok', detail: `${names} run`, fix: null }
      : {
          check: 'image tools',
          state: missing,
          detail: `not usable, needed for images and disks of microVMs: ${broken.join(', ')}`,
          fix: INSTALL_VM_TOOLS,
        };
  return [{ ...qemu, check: 'qemu' }, tools];
}

function qemuOf(context: CommandContext): { readonly program: string; readonly isWanted: boolean } {
  const usual = `/usr/bin/qemu-system-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
  try {
    const home = openExistingHome(homePathOf(context));
    const qemu = home === undefined ? undefined : readSettings(home.paths, context.env, {}).qemu;
    return { program: qemu?.program ?? usual, isWanted: qemu?.accelerator !== undefined };
  } catch {
    // What is wrong with home or settings is a finding of its own.
    return { program: usual, isWanted: false };
  }
}

/** Whether it ended with 0, and the first line of what it said. */
function start(context: CommandContext, name: string, args: readonly string[]): { readonly ok: boolean; readonly text: string } {
  try {
    // Tools for file systems lie in folders that are not on the PATH of everybody.
    const env = { PATH: `${context.env.FIRECREW_CALLER_PATH ?? context.env.PATH ?? '/usr/bin:/bin'}:/usr/sbin:/sbin` };
    const said = execFileSync(name, [...args], { env, timeout: PROBE_TIMEOUT_MS, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    return { ok: true, text: said.split('\n')[0] ?? '' };
  } catch (error) {
    return { ok: false, text: messageOf(error).split('\n')[0] ?? '' };
  }
}
