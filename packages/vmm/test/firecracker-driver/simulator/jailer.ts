import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  realpathSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import type { SimulatorOptions } from './options.ts';

const REPEATED = new Set(['--cgroup', '--resource-limit']);
const FLAGS = new Set(['--daemonize', '--new-pid-ns']);
const DEVICES = ['kvm', 'urandom', 'net/tun'];

interface JailerArguments {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly own: readonly string[];
}

/**
 * What the jailer does to files and process, without its namespaces: the simulated Firecracker takes the jail for its root by itself.
 * Its exit codes and its `.pid` file are the jailer's.
 */
export async function runJailer(options: SimulatorOptions, optionsFile: string, args: readonly string[]): Promise<void> {
  if (args.includes('--version')) {
    process.stdout.write(`Jailer v${options.version}\n\n`);
    return;
  }
  const { values, own } = parse(args);
  const one = (name: string): string => values.get(name)?.[0] ?? die(`Arguments parsing error: Argument '${name}' required`);
  // The names of links do not count: the jail has the name of the file.
  const [id, exec] = [one('--id'), realpathSync(one('--exec-file'))];
  const [uid, gid] = [Number(one('--uid')), Number(one('--gid'))];
  if (!/^[A-Za-z0-9-]{1,64}$/.test(id)) die(`Invalid instance ID: ${id}`);
  const name = basename(exec);
  if (!name.includes('firecracker')) die(`Invalid filename. The filename of \`--exec-file\` option must contain "firecracker": ${name}`);
  const root = join(one('--chroot-base-dir'), name, id, 'root');
  mkdirSync(root, { recursive: true });
  copyFileSync(exec, join(root, name));
  makeGroup(options, values, id);
  prepare(root, uid, gid);
  const command = [process.argv[1] ?? '', 'firecracker', optionsFile, '--id', id, '--simulated-root', root, ...own];
  const pidFile = join(root, `${name}.pid`);
  if (values.has('--daemonize') || values.has('--new-pid-ns')) {
    const stdio = values.has('--daemonize') ? 'ignore' : 'inherit';
    const child = spawn(process.execPath, command, {
      uid,
      gid,
      env: {},
      stdio: ['ignore', stdio, stdio],
      detached: values.has('--daemonize'),
      cwd: '/',
    });
    writeFileSync(pidFile, String(child.pid), { flag: 'wx' });
    child.unref();
    process.exit(0);
  }
  writeFileSync(pidFile, String(process.pid), { flag: 'wx' });
  process.setgid?.(gid);
  process.setuid?.(uid);
  process.chdir('/');
  process.execve?.(process.execPath, [process.execPath, ...command], {});
}

function parse(args: readonly string[]): JailerArguments {
  const end = args.indexOf('--');
  const values = new Map<string, string[]>();
  const waiting = (end < 0 ? args : args.slice(0, end)).values();
  for (const name of waiting) {
    if (values.has(name) && !REPEATED.has(name)) die(`Arguments parsing error: The argument '${name}' was provided more than once.`);
    const value = FLAGS.has(name) ? '' : (waiting.next().value ?? die(`Arguments parsing error: The argument '${name}' requires a value`));
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  return { values, own: end < 0 ? [] : args.slice(end + 1) };
}

/** A group of its own comes with at least one value only, and version 1 is the default. */
function makeGroup({ cgroups }: SimulatorOptions, values: JailerArguments['values'], id: string): void {
  const files = values.get('--cgroup') ?? [];
  if (cgroups === undefined || files.length === 0) return;
  if (values.get('--cgroup-version')?.[0] !== '2') die('Hierarchy not found: memory');
  const group = join(cgroups, values.get('--parent-cgroup')?.[0] ?? 'firecracker', id);
  mkdirSync(group, { recursive: true });
  for (const file of files) if (file.split('=').length !== 2 || file.endsWith('=')) die(`Invalid format for cgroups: ${file}`);
}

function prepare(root: string, uid: number, gid: number): void {
  for (const folder of ['', 'dev', 'dev/net', 'run']) {
    const path = join(root, folder);
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o700);
    chownSync(path, uid, gid);
  }
  for (const device of DEVICES) {
    const path = join(root, 'dev', device);
    if (existsSync(path)) die(`Failed to create /dev/${device} via mknod inside the jail: File exists (os error 17)`);
    const fd = openSync(path, 'wx', 0o600);
    writeSync(fd, 'device');
    closeSync(fd);
    chownSync(path, uid, gid);
  }
}

function die(words: string): never {
  process.stderr.write(`${words}\n`);
  process.exit(1);
}
