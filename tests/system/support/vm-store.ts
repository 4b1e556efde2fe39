import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { messageOf } from '@firecrew/base';
import {
  ArtifactNames,
  buildImage,
  buildPayload,
  DEFAULT_IMAGE_NAME,
  extractKernel,
  ImageStore,
  KERNEL_NAME,
  PAYLOAD_NAME,
} from '@firecrew/rootfs';

const run = promisify(execFile);
const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url));
const CACHE = join(REPOSITORY, 'node_modules/.cache');
const BUNDLE = join(REPOSITORY, 'apps/guest-agent/bundle/guest-agent.cjs');
const ENVIRONMENT = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
/** Package with a kernel made for virtual machines. */
const KERNEL_PACKAGE = 'linux-image-cloud-amd64';
const DOWNLOAD_TIMEOUT_MS = 120_000;
const TOOL_TIMEOUT_MS = 60_000;
/** Tests pack fast; how well a payload packs is the builder's own test. */
const PAYLOAD_LEVEL = 1;

/** Name of a second image, which says in `/etc/image-name` that it is that. */
export const OTHER_IMAGE_NAME = 'other';

/** What is missed on this machine for VMs of the tests, or the root of a store with kernel, payload, and the images `default` and `other`. */
export type TestVmStore = { readonly root: string } | { readonly missing: string };

/**
 * A store made by our own builders: Debian's cloud kernel, guest-init of this checkout, the payload with this checkout's guest agent or
 * another one, and two images of nothing but busybox, what gives up root's rights, what both link, and a way to the guest's root. Built once
 * for the same inputs, in `node_modules/.cache`.
 */
export async function testVmStore(agent = BUNDLE): Promise<TestVmStore> {
  const lacking = await missingTools();
  if (lacking.length > 0) return { missing: `not installed: ${lacking.join(', ')} (tools/install-vm-tools.sh installs them)` };
  try {
    const kernel = await findKernel();
    const work = await mkdtemp(join(CACHE, 'vm-store-making-'));
    try {
      await run(process.execPath, ['tools/build-init.mjs', work], { cwd: REPOSITORY, env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS });
      const init = join(work, 'init');
      const root = join(CACHE, `vm-store-${await keyOf(kernel, init, agent)}`);
      if (!existsSync(root)) await publish(await buildStore(work, kernel, init, agent), root);
      return { root };
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  } catch (error) {
    return { missing: messageOf(error).split('\n')[0] ?? 'the store could not be built' };
  }
}

async function missingTools(): Promise<string[]> {
  if (process.arch !== 'x64') return ['an x86-64 machine'];
  const wanted = [
    ['qemu-system-x86_64', '--version'],
    ['tar2sqfs', '--version'],
    ['mke2fs', '-V'],
    ['busybox', '--help'],
    ['cc', '--version'],
    ['setpriv', '--version'],
  ] as const;
  const found = await Promise.all(wanted.map(async ([tool, option]) => ((await starts(tool, option)) ? undefined : tool)));
  return found.filter((tool) => tool !== undefined);
}

function starts(tool: string, option: string): Promise<boolean> {
  return run(tool, [option], { env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

interface TestKernel {
  readonly path: string;
  readonly modules: string;
}

/** A kernel that was downloaded once, or is downloaded now; the folder holds `boot` and `lib/modules`. */
async function findKernel(): Promise<TestKernel> {
  const folder = process.env.FIRECREW_TEST_KERNEL ?? join(CACHE, 'test-kernel');
  if (!existsSync(join(folder, 'boot'))) await downloadKernel(folder);
  const image = (await readdir(join(folder, 'boot'))).find((name) => name.startsWith('vmlinuz-'));
  if (image === undefined) throw new Error(`${folder} holds no kernel`);
  return { path: join(folder, 'boot', image), modules: join(folder, 'lib/modules') };
}

async function downloadKernel(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const fresh = await mkdtemp(join(CACHE, 'test-kernel-making-'));
  try {
    const { stdout } = await run('apt-cache', ['depends', KERNEL_PACKAGE], { env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS });
    const name = /Depends: (linux-image-\S+)/.exec(stdout)?.[1];
    if (name === undefined) throw new Error(`apt-cache knows no ${KERNEL_PACKAGE}`);
    await run('apt-get', ['download', name], { cwd: fresh, env: ENVIRONMENT, timeout: DOWNLOAD_TIMEOUT_MS });
    const [archive = ''] = await readdir(fresh);
    await run('dpkg-deb', ['-x', archive, '.'], { cwd: fresh, env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS });
    await rm(join(fresh, archive));
    await publish(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** Puts a folder in its place; another test may have been first with the same. */
async function publish(made: string, place: string): Promise<void> {
  await rename(made, place).catch((error: unknown) => {
    if (!existsSync(place)) throw error;
  });
}

async function keyOf(kernel: TestKernel, init: string, agent: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of [kernel.path, init, agent, process.execPath, fileURLToPath(import.meta.url)]) hash.update(await readFile(file));
  return hash.digest('hex').slice(0, 16);
}

async function buildStore(work: string, kernel: TestKernel, init: string, agent: string): Promise<string> {
  const root = join(work, 'store');
  const [store, names] = [new ImageStore(root), new ArtifactNames(root)];
  const made = await store.add(({ target, work: folder }) => extractKernel({ ...kernel, init, target, work: folder }));
  await names.set(KERNEL_NAME, made.id);
  const payload = await store.add(({ target }) => buildPayload({ node: process.execPath, agent, target, level: PAYLOAD_LEVEL }));
  await names.set(PAYLOAD_NAME, payload.id);
  const tree = await makeTree(join(work, 'tree'));
  const source = { kind: 'directory', path: tree, owners: 'root' } as const;
  for (const name of [DEFAULT_IMAGE_NAME, OTHER_IMAGE_NAME]) {
    await writeFile(join(tree, 'etc/image-name'), `${name}\n`);
    const image = await store.add(({ target, work: folder }) => buildImage({ source, architecture: 'amd64', target, work: folder }));
    await names.set(name, image.id);
  }
  return root;
}

const ROOT_SHELL = `
#include <unistd.h>
int main(int count, char **argv) {
  char *shell[] = {"sh", "-c", argv[1], 0};
  return count == 2 && setgid(0) == 0 && setuid(0) == 0 && execv("/bin/sh", shell) ? 126 : 125;
}
`;

/** What a guest looks like whose root was taken: a set-uid program that runs any command. */
async function makeRootShell(path: string): Promise<void> {
  await writeFile(`${path}.c`, ROOT_SHELL);
  await run('cc', ['-static', '-Os', '-o', path, `${path}.c`], { env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS });
  await rm(`${path}.c`);
  await chmod(path, 0o4755);
}

/** Busybox under all its names, the program that gives up root's rights, and two accounts. */
async function makeTree(tree: string): Promise<string> {
  for (const folder of ['bin', 'etc', 'root', 'tmp', 'proc', 'sys', 'dev', 'run', 'home', 'opt', 'usr/bin', 'var']) {
    await mkdir(join(tree, folder), { recursive: true });
  }
  const program = await copyProgram('busybox', tree, 'bin/busybox');
  const names = (await run(program, ['--list'], { env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS })).stdout.trim().split('\n');
  for (const name of names) if (name !== 'busybox') await symlink('busybox', join(tree, 'bin', name));
  await rm(join(tree, 'bin/setpriv'), { force: true });
  await copyProgram('setpriv', tree, 'usr/bin/setpriv');
  await makeRootShell(join(tree, 'bin/as-root'));
  await writeFile(join(tree, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n');
  await writeFile(join(tree, 'etc/group'), 'root:x:0:\nagent:x:1000:\n');
  return tree;
}

/** Copies a program of this machine, and what it links, to the places where it looks for them. */
async function copyProgram(name: string, tree: string, target: string): Promise<string> {
  const options = { env: ENVIRONMENT, timeout: TOOL_TIMEOUT_MS };
  const program = (await run('/bin/sh', ['-c', `command -v ${name}`], options)).stdout.trim();
  await copyFile(program, join(tree, target));
  // A static one links nothing, and `ldd` says so with a failure.
  const linked = await run('ldd', [program], options).then(
    ({ stdout }) => [...stdout.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? ''),
    () => [],
  );
  for (const library of linked) {
    await mkdir(join(tree, library, '..'), { recursive: true });
    await copyFile(library, join(tree, library));
  }
  return program;
}
