// Compiles guest-init, pid 1 of a microVM, into one static program: node tools/build-init.mjs [FOLDER]
// The same compiler gives the same bytes. Where musl is installed its wrapper is taken: the result is a tenth as large.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const sources = join(root, 'apps/guest-agent/init');
const COMPILERS = ['musl-gcc', 'cc', 'gcc', 'clang'];
const FLAGS = [
  ...['-std=c11', '-D_GNU_SOURCE', '-Os', '-Wall', '-Wextra', '-static', '-no-pie'],
  // A write over the end of a buffer ends pid 1, and with it the VM.
  ...['-fstack-protector-strong', '-U_FORTIFY_SOURCE', '-D_FORTIFY_SOURCE=2'],
  ...['-ffunction-sections', '-fdata-sections', '-Wl,--gc-sections'],
  // Nothing of the time, the folder or the compiler's version.
  ...['-s', '-fno-ident', '-Wl,--build-id=none'],
];

const compiler = COMPILERS.find((name) => spawnSync(name, ['--version']).status === 0);
if (compiler === undefined) {
  process.stderr.write(`build-init: no C compiler (${COMPILERS.join(', ')}) is installed. On Debian: apt-get install gcc libc6-dev\n`);
  process.exit(1);
}
const folder = resolve(process.argv[2] ?? join(sources, 'build'));
mkdirSync(folder, { recursive: true });
const target = join(folder, 'init');
const files = readdirSync(sources)
  .filter((name) => name.endsWith('.c'))
  .sort();
const { status, stderr, error } = spawnSync(compiler, [...FLAGS, '-o', target, ...files], { cwd: sources, encoding: 'utf8' });
if (status !== 0) {
  process.stderr.write(`build-init: ${compiler} did not compile guest-init: ${error?.message ?? stderr}\n`);
  process.exit(1);
}
// The command of the checkout takes it from its bundle, which may have been made before.
const bundled = join(root, 'packages/cli/bundle/apps');
if (process.argv[2] === undefined && existsSync(bundled)) copyFileSync(target, join(bundled, 'guest-init'));
process.stderr.write(stderr);
process.stdout.write(`${target} (${compiler})\n`);
