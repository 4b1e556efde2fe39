// Makes a fresh clone ready (pinned package manager, dependencies, build) and runs one target on the pinned Node.
// Runs on the caller's Node (20.19 or newer), before anything is installed: Node's own modules only.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withBuildLock } from './bootstrap/build-lock.mjs';
import { callerPath, installEnvironment, nodeFolders, onPath, targetEnvironment } from './bootstrap/environment.mjs';
import { FriendlyError, quietStep, runTarget, say } from './bootstrap/run-step.mjs';
import { installStamp, isStamped, keepStamp, outputStamp, sourceStamp } from './bootstrap/stamps.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** The command of this checkout, as seen from `node_modules/.bin`. */
const COMMAND = '../../bin/firecrew';

/** What each target runs on the pinned Node, from the repository's root; the first file that exists. */
const TARGETS = {
  demo: { files: ['examples/demo/run.mjs'], args: [] },
  test: { files: ['node_modules/vitest/vitest.mjs'], args: ['run'] },
  // The checks say more about sources that do not build than the build does.
  lint: { files: ['tools/lint.ts'], args: [], runsUnbuilt: true },
  bench: { files: ['bench/run.mjs', 'bench/run.ts'], args: [] },
  soak: { files: ['tests/soak/run.mjs', 'tests/soak/run.ts'], args: [] },
  cases: { files: ['tests/cases/run.mjs', 'tests/cases/run.ts'], args: [] },
  build: { files: [], args: [] },
};

/** Bootstraps and runs `argv[0]` with the remaining arguments; gives the exit code. */
export async function main(argv) {
  const [name, ...args] = argv;
  const target = Object.hasOwn(TARGETS, name ?? '') ? TARGETS[name] : undefined;
  if (target === undefined) throw new FriendlyError(`unknown target ${name ?? '(none)'}; there are ${Object.keys(TARGETS).join(', ')}.`);
  if (!onPath('git', process.env.PATH ?? '')) throw new FriendlyError('git is not on the PATH. Install git and run this again.');

  const nodeBinary = await withBuildLock(
    ROOT,
    () => prepare(target),
    () => say('waiting for another build of this checkout to end ...'),
  );
  if (name === 'build') return 0;
  const file = target.files.find((path) => existsSync(join(ROOT, path)));
  if (file === undefined) throw new FriendlyError(`there is nothing to run for ${name} yet (looked for ${target.files.join(', ')}).`);
  const env = targetEnvironment({ environment: process.env, root: ROOT, nodeBinary });
  return await runTarget(nodeBinary, [join(ROOT, file), ...target.args, ...args], { cwd: ROOT, env });
}

async function prepare({ runsUnbuilt = false }) {
  await install();
  linkCommand();
  const nodeBinary = findNode();
  await build(nodeBinary).catch((error) => {
    if (!runsUnbuilt) throw error;
    say(error.message);
  });
  return nodeBinary;
}

async function install() {
  const stamp = installStamp(ROOT);
  if (isStamped(ROOT, 'install', stamp)) return;
  const first = !existsSync(join(ROOT, 'node_modules'));
  const { packageManager } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  await quietStep({
    label: `installing dependencies${first ? ' (first run: about a minute)' : ''}`,
    command: 'npx',
    args: ['--yes', packageManager, 'install', '--frozen-lockfile', '--config.confirmModulesPurge=false'],
    cwd: ROOT,
    env: installEnvironment(process.env, ROOT),
    hint: (output) =>
      output.includes('ERR_PNPM_OUTDATED_LOCKFILE')
        ? `A package.json changed without the lock file; run: npx --yes ${packageManager} install --no-frozen-lockfile`
        : 'Firecrew needs npm (it comes with Node) and a registry that npm can reach; check `npm ping`, then run this again.',
  });
  keepStamp(ROOT, 'install', stamp);
}

/** Lets `npx firecrew` find the command of this checkout without asking a registry. */
function linkCommand() {
  const link = join(ROOT, 'node_modules', '.bin', 'firecrew');
  if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(link) === COMMAND) return;
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(COMMAND, link);
}

/** The pinned Node, or the system's where there is none for this platform or it does not start here (another C library). */
function findNode() {
  const pinned = nodeFolders(ROOT).map((folder) => join(folder, 'node'));
  const system = callerPath(process.env.PATH ?? '', ROOT)
    .split(':')
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'node'));
  for (const candidate of [...pinned, ...system]) {
    if (!existsSync(candidate)) continue;
    const { status, stdout } = spawnSync(candidate, ['--version'], { encoding: 'utf8' });
    const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(stdout ?? '') ?? [];
    if (status === 0 && (Number(major) > 22 || (Number(major) === 22 && Number(minor) >= 13))) return candidate;
  }
  throw new FriendlyError(
    `there is no pinned Node for ${process.platform}-${process.arch}, and the one on the PATH is ${process.version}: install Node 22.13 or newer.`,
  );
}

async function build(nodeBinary) {
  // Taken before the build: who edits a source meanwhile wants another one.
  const sources = sourceStamp(ROOT);
  if (isStamped(ROOT, 'build', `${sources} ${outputStamp(ROOT)}`)) return;
  await quietStep({
    label: 'building',
    command: join(ROOT, 'node_modules', '.bin', 'turbo'),
    args: ['run', 'build', 'bundle', '--output-logs=errors-only', '--no-color'],
    cwd: ROOT,
    env: { ...targetEnvironment({ environment: process.env, root: ROOT, nodeBinary }), CI: 'true' },
    hint: () => 'The sources do not build; the messages above say where.',
  });
  keepStamp(ROOT, 'build', `${sources} ${outputStamp(ROOT)}`);
}
