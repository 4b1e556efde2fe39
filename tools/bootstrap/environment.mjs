// The environment that installs, builds and targets see: the caller's, without what npm adds to it for its own scripts.
import { existsSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';

/** Settings of npm that a caller sets to reach a registry; every other `npm_*` variable is npm's own and is dropped. */
const KEPT_NPM_SETTINGS = new Set([
  'npm_config_registry',
  'npm_config_cafile',
  'npm_config_ca',
  'npm_config_strict_ssl',
  'npm_config_proxy',
  'npm_config_http_proxy',
  'npm_config_https_proxy',
  'npm_config_noproxy',
  'npm_config_userconfig',
  'npm_config_globalconfig',
  'npm_config_cache',
  'npm_config_store_dir',
]);

const DROPPED = new Set(['init_cwd', 'pnpm_script_src_dir', 'node', 'npm_config_noproxy_empty']);

/** Switches off telemetry, update checks and prompts of the tools we start. */
const QUIET = {
  DO_NOT_TRACK: '1',
  TURBO_TELEMETRY_DISABLED: '1',
  TURBO_NO_UPDATE_NOTIFIER: '1',
  NO_UPDATE_NOTIFIER: '1',
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
};

/** `environment` without the variables of npm's lifecycle. */
export function withoutLifecycle(environment) {
  const kept = {};
  for (const [name, value] of Object.entries(environment)) {
    const lower = name.toLowerCase();
    if (DROPPED.has(lower)) continue;
    // npm exports an empty noproxy to every script; it would hide the caller's NO_PROXY.
    if (lower.startsWith('npm_') && (!KEPT_NPM_SETTINGS.has(lower) || value === '')) continue;
    kept[name] = value;
  }
  return kept;
}

/** The caller's PATH without the folders that npm and this repository put in front of it. */
export function callerPath(path, root) {
  const ours = new Set();
  for (let folder = root; ; folder = dirname(folder)) {
    ours.add(join(folder, 'node_modules', '.bin'));
    if (folder === dirname(folder)) break;
  }
  for (const folder of nodeFolders(root)) ours.add(folder);
  return path
    .split(delimiter)
    .filter((folder) => folder !== '' && !ours.has(resolve(folder)) && !folder.endsWith(`${join('run-script', 'lib')}/node-gyp-bin`))
    .join(delimiter);
}

/** Where the pinned Node of this platform lies, most wanted first. */
export function nodeFolders(root) {
  const name = `node-${process.platform}-${process.arch}`;
  return [join(root, 'node_modules', name, 'bin')];
}

/** The environment of everything that is started once the pinned Node is known (`nodeBinary`). */
export function targetEnvironment({ environment, root, nodeBinary }) {
  const caller = callerPath(environment.PATH ?? '', root);
  const { npm_config_update_notifier: _n, npm_config_fund: _f, npm_config_audit: _a, ...quiet } = QUIET;
  return {
    ...withoutLifecycle(environment),
    ...quiet,
    FIRECREW_CALLER_PATH: caller,
    PATH: [dirname(nodeBinary), join(root, 'node_modules', '.bin'), caller].join(delimiter),
  };
}

/** The environment of an install: no prompts, no telemetry, everything else as the caller has it. */
export function installEnvironment(environment, root) {
  return { ...withoutLifecycle(environment), ...QUIET, CI: 'true', PATH: callerPath(environment.PATH ?? '', root) };
}

/** True where `command` lies in one of the folders of `path`. */
export function onPath(command, path) {
  return path.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, command)));
}
