import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { hasTool, REPOSITORY, runTool } from './tools.ts';

/** A Linux kernel with its modules. */
export interface TestKernel {
  readonly image: string;
  /** The content of a module by its name. */
  module(name: string): Buffer;
}

const PACKAGE = 'linux-image-cloud-amd64';
/** Time for a download of 27 MB, in `ms`. */
const DOWNLOAD_TIMEOUT_MS = 90_000;

/**
 * Debian's kernel for clouds: of the folder `FIRECREW_TEST_KERNEL` (which holds `boot` and `lib/modules`), or downloaded once into
 * `node_modules/.cache`. Gives the reason where there is none.
 */
export function findKernel(): TestKernel | string {
  const named = process.env.FIRECREW_TEST_KERNEL;
  if (named !== undefined) return readKernel(named) ?? `${named} holds no kernel with modules`;
  if (process.arch !== 'x64') return 'the kernel of this test is for x86-64';
  const cache = join(REPOSITORY, 'node_modules/.cache/test-kernel');
  const cached = readKernel(cache);
  if (cached !== undefined) return cached;
  if (!hasTool('apt-get') || !hasTool('dpkg-deb')) return 'neither FIRECREW_TEST_KERNEL nor apt-get is there to get a kernel from';
  const fresh = `${cache}.${process.pid}`;
  try {
    mkdirSync(fresh, { recursive: true });
    const name = /Depends: (linux-image-\S+)/.exec(runTool('apt-cache', ['depends', PACKAGE]))?.[1];
    if (name === undefined) return `apt-cache knows no ${PACKAGE}`;
    runTool('apt-get', ['download', name], { cwd: fresh, timeoutMs: DOWNLOAD_TIMEOUT_MS });
    const [archive = ''] = readdirSync(fresh);
    runTool('dpkg-deb', ['-x', archive, '.'], { cwd: fresh });
    rmSync(join(fresh, archive));
    renameSync(fresh, cache);
  } catch (error) {
    const another = readKernel(cache);
    if (another !== undefined) return another;
    return `no kernel could be downloaded: ${error instanceof Error ? error.message.split('\n')[0] : 'unknown'}`;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return readKernel(cache) ?? `the package ${PACKAGE} holds no kernel with modules`;
}

function readKernel(folder: string): TestKernel | undefined {
  const boot = join(folder, 'boot');
  const image = existsSync(boot) ? readdirSync(boot).find((name) => name.startsWith('vmlinuz-')) : undefined;
  if (image === undefined) return undefined;
  const modules = join(folder, 'lib/modules', image.slice('vmlinuz-'.length));
  if (!existsSync(modules)) return undefined;
  const files = readdirSync(modules, { recursive: true, encoding: 'utf8' });
  return {
    image: join(boot, image),
    module: (name) => {
      const path = files.find((file) => file.endsWith(`/${name}.ko`));
      if (path === undefined) throw new Error(`the kernel in ${folder} has no module ${name}`);
      return readFileSync(join(modules, path));
    },
  };
}
