import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { messageOf } from '@firecrew/base';
import { HOME_PATH_MAX_BYTES, openExistingHome } from '../home/open-home.ts';
import { whileWatched } from '../images/while-watched.ts';
import { paint } from '../render/run-screen.ts';
import { type NpmSettings, readNpmSettings, registryEntry, strangeAuthorities } from '../run/npm-registry.ts';
import { findServer } from '../server/find-server.ts';
import { readSettings } from '../settings/read-settings.ts';
import { locateApps } from '../supervisor/locate-apps.ts';
import { type CommandContext, homePathOf } from './context.ts';
import { probeBackends } from './doctor-backends.ts';
import { probeKeyStore } from './doctor-key-store.ts';
import { type ProgramNeed, probeProgram, probeVmPrograms } from './doctor-programs.ts';
import { probeModelRoutes } from './doctor-routes.ts';

/** Room that a home needs for the database, one base and one tree, in bytes. */
export const DISK_MIN_BYTES = 2 * 1024 ** 3;
const GIT: ProgramNeed = {
  name: 'git',
  args: ['--version'],
  missing: 'problem',
  use: 'missions on a repository',
  fix: 'apt-get install git',
};

/** What one look found; `fix` is the one command that mends it. */
export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly fix: string | null;
}

interface DoctorOptions {
  readonly json: boolean;
  readonly vmSelftest: boolean;
}

/** `firecrew doctor`: exit code 1 when something must be mended. With `vmSelftest` it boots a VM too, which Ctrl-C ends. */
export async function doctorCommand(context: CommandContext, options: DoctorOptions): Promise<number> {
  if (!options.vmSelftest) return await examine(context, options, []);
  const { selftestVms } = await import('./doctor-vms.ts');
  return await whileWatched(context.out, async (signal) => await examine(context, options, await selftestVms(context, signal)));
}

async function examine(context: CommandContext, options: DoctorOptions, ofVms: readonly Finding[]): Promise<number> {
  const npm = await readNpmSettings(context.env, '/');
  const findings = [
    judgeNode(process.versions.node),
    probeProgram(context, GIT),
    probeBubblewrap(context),
    probeKvm(),
    ...probeVmPrograms(context),
    probeHome(context),
    probeDisk(context),
    probeApps(),
    await probeServices(context),
    probeSettings(context),
    ...(await probeBackends(context)),
    ...(await probeModelRoutes(context)),
    await probePort(context),
    ...(await probeKeyStore(context)),
    probeRegistry(npm),
    probeCertificates(context, npm),
    ...ofVms,
  ];
  if (options.json) context.out.line(JSON.stringify(findings));
  else for (const line of renderFindings(context, findings)) context.out.line(line);
  return findings.some((finding) => finding.state === 'problem') ? 1 : 0;
}

function renderFindings(context: CommandContext, findings: readonly Finding[]): string[] {
  const tone = { ok: 'good', warning: 'warn', problem: 'bad' } as const;
  return findings.flatMap(({ check, state, detail, fix }) => [
    `${paint(context.out, { tone: tone[state], text: state.padEnd(8) })} ${check.padEnd(12)} ${detail}`,
    ...(fix === null ? [] : [`${' '.repeat(22)}${fix}`]),
  ]);
}

/** Whether this Node can run firecrew. */
export function judgeNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fits = major > 22 || (major === 22 && minor >= 13);
  const fix = fits ? null : 'npm install -g n && n 24';
  return { check: 'node', state: fits ? 'ok' : 'problem', detail: `Node ${version}${fits ? '' : '; 22.13 or newer is needed'}`, fix };
}

function probeBubblewrap(context: CommandContext): Finding {
  const more = 'keeps agents from your files, processes and network; without it runs need --allow-unisolated';
  const args = ['--ro-bind', '/', '/', '--unshare-all', 'true'];
  const found = probeProgram(context, { name: 'bwrap', args, missing: 'warning', use: more, fix: 'apt-get install bubblewrap' });
  return found.state === 'ok'
    ? { ...found, check: 'bubblewrap', detail: 'usable: agents are kept from your files and network' }
    : { ...found, check: 'bubblewrap' };
}

function probeKvm(): Finding {
  if (!existsSync('/dev/kvm'))
    return { check: 'kvm', state: 'warning', detail: 'no /dev/kvm: microVMs are not possible here, or only slow ones', fix: null };
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
    return { check: 'kvm', state: 'ok', detail: '/dev/kvm is there', fix: null };
  } catch {
    return {
      check: 'kvm',
      state: 'warning',
      detail: '/dev/kvm is there and may not be used by this account',
      fix: 'usermod -aG kvm $USER',
    };
  }
}

function probeHome(context: CommandContext): Finding {
  const root = homePathOf(context);
  if (Buffer.byteLength(root) > HOME_PATH_MAX_BYTES)
    return {
      check: 'home',
      state: 'problem',
      detail: `${root} is longer than ${HOME_PATH_MAX_BYTES} bytes`,
      fix: 'export FIRECREW_HOME=/var/tmp/firecrew',
    };
  try {
    const home = openExistingHome(root);
    return {
      check: 'home',
      state: 'ok',
      detail: home === undefined ? `${root} is made at the first start` : `${root} (${home.homeId})`,
      fix: null,
    };
  } catch (error) {
    return { check: 'home', state: 'problem', detail: messageOf(error), fix: 'export FIRECREW_HOME=/var/tmp/firecrew' };
  }
}

function probeDisk(context: CommandContext): Finding {
  let folder = homePathOf(context);
  while (!existsSync(folder)) folder = dirname(folder);
  const stats = statfsSync(folder);
  const free = stats.bavail * stats.bsize;
  const gib = (free / 1024 ** 3).toFixed(1);
  const enough = free >= DISK_MIN_BYTES;
  return {
    check: 'disk',
    state: enough ? 'ok' : 'problem',
    detail: `${gib} GiB free in ${folder}`,
    fix: enough ? null : 'export FIRECREW_HOME=/a/larger/disk/firecrew',
  };
}

function probeApps(): Finding {
  const missing = Object.values(locateApps()).filter((file: string) => !existsSync(file));
  if (missing.length === 0) return { check: 'programs', state: 'ok', detail: 'server and node agent are there', fix: null };
  return { check: 'programs', state: 'problem', detail: `missing: ${missing.join(', ')}`, fix: 'npm run build' };
}

async function probeServices(context: CommandContext): Promise<Finding> {
  const check = 'services';
  try {
    const home = openExistingHome(homePathOf(context));
    if (home === undefined) return { check, state: 'ok', detail: 'nothing was started yet', fix: null };
    const found = await findServer(home);
    if (found.ready) return { check, state: 'ok', detail: `server and database are ready at ${found.url}`, fix: null };
    const off = found.reason === 'no_file' || found.reason === 'dead';
    return {
      check,
      state: off ? 'ok' : 'problem',
      detail: off ? 'not running' : `not ready: ${found.reason.replaceAll('_', ' ')}`,
      fix: off ? null : 'firecrew down && firecrew up',
    };
  } catch (error) {
    return { check, state: 'problem', detail: messageOf(error), fix: 'firecrew down && firecrew up' };
  }
}

function probeSettings(context: CommandContext): Finding {
  const root = homePathOf(context);
  try {
    const home = openExistingHome(root);
    if (home !== undefined) readSettings(home.paths, context.env, {});
    return { check: 'settings', state: 'ok', detail: 'valid', fix: null };
  } catch (error) {
    return { check: 'settings', state: 'problem', detail: messageOf(error), fix: `$EDITOR ${root}/config.json` };
  }
}

/** Whether the server can listen where it is to: on a free port of loopback, or at the address of the settings. */
async function probePort(context: CommandContext): Promise<Finding> {
  const check = 'port';
  try {
    const home = openExistingHome(homePathOf(context));
    const listen = home === undefined ? undefined : readSettings(home.paths, context.env, {}).listen;
    const { host, port } = listen ?? { host: '127.0.0.1', port: 0 };
    const running = home === undefined ? undefined : await findServer(home);
    const place = port === 0 ? `a free port of ${host}` : `${host}:${port}`;
    if (running?.ready === true) return { check, state: 'ok', detail: `the server listens at ${running.url}`, fix: null };
    const fault = await bindFault(host, port);
    if (fault === undefined) return { check, state: 'ok', detail: `${place} can be used`, fix: null };
    return { check, state: 'problem', detail: `${place} cannot be used: ${fault}`, fix: 'firecrew up --listen 127.0.0.1:0' };
  } catch (error) {
    return { check, state: 'warning', detail: messageOf(error), fix: null };
  }
}

async function bindFault(host: string, port: number): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(messageOf(error)));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

function probeRegistry({ registry }: NpmSettings): Finding {
  try {
    return { check: 'npm', state: 'ok', detail: `--setup-allow registry:npm means ${registryEntry(registry).entry}`, fix: null };
  } catch (error) {
    return { check: 'npm', state: 'warning', detail: messageOf(error), fix: 'npm config set registry https://registry.npmjs.org/' };
  }
}

function probeCertificates(context: CommandContext, npm: NpmSettings): Finding {
  const file = context.env.NODE_EXTRA_CA_CERTS;
  const strange = strangeAuthorities(npm, context.env);
  if (strange !== undefined) return { check: 'certificates', state: 'warning', ...strange };
  if (file === undefined || file === '') return { check: 'certificates', state: 'ok', detail: 'those of the system', fix: null };
  if (existsSync(file)) return { check: 'certificates', state: 'ok', detail: `those of the system and ${file}`, fix: null };
  return {
    check: 'certificates',
    state: 'warning',
    detail: `NODE_EXTRA_CA_CERTS names ${file}, which is not there`,
    fix: 'unset NODE_EXTRA_CA_CERTS',
  };
}
