import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { chainVariable } from '../shim/egress-chain.ts';
import { LAUNCH_FILE, type ShimLaunch } from '../shim/shim-arguments.ts';
import { admitUsers, type TurnPaths } from '../turn-folder/turn-folder.ts';
import type { InstalledPrograms } from './install-programs.ts';

/** CA bundles of common systems: the guest trusts what its host trusts. */
const CA_BUNDLES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];
/** A tree on its way makes many short-lived buffers: a small young generation and one collecting thread let go of them early. */
const SHIM_OPTIONS = ['--max-semi-space-size=1', '--single-threaded-gc'];

/** What of a launch file differs from attempt to attempt and from node to node. */
export type LaunchFacts = Omit<ShimLaunch, 'guestAgent' | 'homes' | 'caBundle'>;

/** Starts the shim of a turn folder in a session of its own, so that it outlives this agent. */
export function launchShim(paths: TurnPaths, version: InstalledPrograms, facts: LaunchFacts, onError: (error: Error) => void): void {
  if (facts.users !== null) admitUsers(paths.root);
  const launch: ShimLaunch = {
    ...facts,
    guestAgent: { node: version.node, bundle: version.guestAgent },
    homes: [homedir()],
    caBundle: CA_BUNDLES.find((file) => isReadable(file)) ?? null,
  };
  const log = openSync(paths.shimLog, 'a', 0o600);
  try {
    writeFileSync(join(paths.root, LAUNCH_FILE), JSON.stringify(launch), { mode: 0o600 });
    const child = spawn(version.node, [...SHIM_OPTIONS, version.shim, paths.root], {
      detached: true,
      stdio: ['ignore', log, log],
      env: { ...shimEnvironment(), ...chainVariable(facts.egressProxy, process.env) },
      cwd: paths.root,
    });
    child.on('error', onError);
    child.unref();
  } finally {
    closeSync(log);
  }
}

function shimEnvironment(): Record<string, string> {
  const { PATH, NODE_EXTRA_CA_CERTS } = process.env;
  return {
    PATH: PATH ?? '/usr/bin:/bin',
    HOME: homedir(),
    LANG: 'C.UTF-8',
    ...(NODE_EXTRA_CA_CERTS === undefined ? {} : { NODE_EXTRA_CA_CERTS }),
  };
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
