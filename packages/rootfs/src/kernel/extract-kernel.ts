import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '@firecrew/base';
import { ELF_MACHINES, isElf, malformedElf, readElf } from '../elf/read-elf.ts';
import { readInterpreter } from '../elf/redirect-elf.ts';
import { buildInitrd } from '../initrd/build-initrd.ts';
import { DEFAULT_IMAGE_LIMITS } from '../limits.ts';
import { ByteBudget } from '../oci/spool-archive.ts';
import type { OnProgress } from '../progress.ts';
import type { ArtifactFacts } from '../store/artifact-manifest.ts';
import { type BzImage, malformedKernel, parseBzImage } from './bzimage.ts';
import { decompress, decompressExact } from './decompress.ts';
import { isPackage, type KernelFiles, kernelOfFile, kernelOfPackage } from './kernel-files.ts';
import { readModuleInfo } from './module-info.ts';
import {
  type ModuleIndex,
  type ModulePlan,
  moduleOfPath,
  parseModulesBuiltin,
  parseModulesDep,
  resolveModules,
} from './resolve-modules.ts';

/** The kernel for QEMU, as its makers packed it. */
export const BZIMAGE_FILE = 'bzImage';
/** The kernel for Firecracker, unpacked. */
export const VMLINUX_FILE = 'vmlinux';
/** guest-init and the modules, for both. */
export const INITRD_FILE = 'initrd';
/** Bytes of one unpacked module. */
const MAX_MODULE_BYTES = 64 * 1024 * 1024;

/** What a guest of either driver needs. Devices first, then file systems; what needs what is up to the kernel. */
export const GUEST_MODULES: readonly string[] = [
  'virtio_pci',
  'virtio_mmio',
  'virtio_rng',
  'virtio_blk',
  'virtio_console',
  'vmw_vsock_virtio_transport',
  'virtio_balloon',
  'pvpanic_pci',
  'pvpanic_mmio',
  'overlay',
  'squashfs',
  'libcrc32c',
  'ext4',
];

/** Without these, as modules or built in, no guest comes up. */
export const REQUIRED_MODULES: readonly string[] = ['virtio_blk', 'overlay', 'squashfs', 'ext4'];

/** Where a kernel comes from, and what is taken of it. */
export interface ExtractKernelOptions {
  /** A package of Debian (`.deb`), or a bzImage such as `/boot/vmlinuz-6.1.0`. */
  readonly path: string;
  /** Folder with one folder of modules for each version; for a bzImage. Without it the kernel must have everything built in. */
  readonly modules?: string | undefined;
  /** guest-init, a static program; without it there is no {@link INITRD_FILE}. */
  readonly init?: string | undefined;
  /** An empty folder that gets {@link BZIMAGE_FILE}, {@link VMLINUX_FILE}, `modules/` and {@link INITRD_FILE}. */
  readonly target: string;
  /** An empty folder for the unpacked package; the caller removes it. */
  readonly work: string;
  readonly wanted?: readonly string[];
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/**
 * Takes a kernel out of a package or a file: for QEMU as it is, for Firecracker unpacked, with the modules that a guest needs in the order
 * they are loaded in. Nothing is installed or run. Throws `source_unreadable`, `package_malformed`, `kernel_malformed`, `kernel_unsupported`,
 * `modules_malformed`, `kernel_module_missing`, `elf_malformed`, `image_too_large`, `tool_missing`, `tool_failed`.
 */
export async function extractKernel(options: ExtractKernelOptions): Promise<ArtifactFacts & { readonly kind: 'kernel' }> {
  const say: OnProgress = options.onProgress ?? (() => undefined);
  say({ step: 'reading the kernel' });
  const files = await openKernel(options);
  try {
    const image = await files.readImage();
    const header = parseBzImage(image);
    await writeFile(join(options.target, BZIMAGE_FILE), image);
    say({ step: 'unpacking the kernel' });
    await writeFile(join(options.target, VMLINUX_FILE), await unpackKernel(image, header));
    say({ step: 'choosing modules' });
    const { plan, written } = await takeModules(files, header.version, options);
    await writeInitrd(options, written);
    return {
      kind: 'kernel',
      architecture: 'amd64',
      version: header.version,
      modules: written,
      builtIn: [...plan.builtIn],
      missing: [...plan.missing],
    };
  } finally {
    await files.close();
  }
}

async function openKernel({ path, modules, work, signal }: ExtractKernelOptions): Promise<KernelFiles> {
  if (!(await isPackage(path))) return kernelOfFile(path, modules);
  return await kernelOfPackage(path, work, new ByteBudget(DEFAULT_IMAGE_LIMITS.maxBytes), signal);
}

/** The ELF kernel inside a bzImage. Throws `kernel_malformed`, `tool_missing`, `tool_failed`. */
export async function unpackKernel(image: Buffer, { payloadOffset, payloadBytes, format, unpackedBytes }: BzImage): Promise<Buffer> {
  const packed = image.subarray(payloadOffset, payloadOffset + payloadBytes);
  const kernel = await decompressExact(packed, format, unpackedBytes);
  if (!isElf(kernel) || readElf(kernel).machine !== ELF_MACHINES.amd64)
    throw malformedKernel('what is packed in it is no kernel for x86-64');
  return kernel;
}

async function writeInitrd({ init, target }: ExtractKernelOptions, modules: readonly { name: string; file: string }[]): Promise<void> {
  if (init === undefined) return;
  const program = await readProgram(init);
  const contents = await Promise.all(modules.map(async ({ name, file }) => ({ name, content: await readFile(join(target, file)) })));
  await writeFile(join(target, INITRD_FILE), buildInitrd(program, contents));
}

/** Throws `source_unreadable`, `elf_malformed`. */
async function readProgram(path: string): Promise<Buffer> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new CodedError('source_unreadable', `guest-init at ${path} cannot be read: ${messageOf(cause)}`, {
      id: path,
      action: 'Build it: node tools/build-init.mjs',
      cause,
    });
  });
  // A program that needs a loader would panic the kernel: the initrd has none.
  if (readInterpreter(bytes) !== undefined) throw malformedElf(`${path} is not static, and guest-init has to be`);
  if (readElf(bytes).machine !== ELF_MACHINES.amd64) throw malformedElf(`${path} is not for x86-64, and the kernel is`);
  return bytes;
}

interface TakenModules {
  readonly plan: ModulePlan;
  readonly written: { readonly name: string; readonly file: string }[];
}

async function takeModules(files: KernelFiles, version: string, options: ExtractKernelOptions): Promise<TakenModules> {
  const paths = await files.listModules(version);
  if (paths.length === 0) return { plan: { load: [], builtIn: [], missing: [] }, written: [] };
  const wanted = options.wanted ?? GUEST_MODULES;
  const contents = new Map<string, Buffer>();
  const index = await indexModules(files, version, paths, wanted, contents);
  const plan = resolveModules(wanted, index);
  const lacking = REQUIRED_MODULES.filter((name) => wanted.includes(name) && plan.missing.includes(name));
  if (lacking.length > 0)
    throw new CodedError('kernel_module_missing', `the kernel ${version} has no ${lacking.join(', ')}`, {
      id: version,
      action: "Use a kernel made for virtual machines, such as Debian's linux-image-cloud-amd64.",
    });
  await mkdir(join(options.target, 'modules'));
  const written: { name: string; file: string }[] = [];
  for (const name of plan.load) {
    const file = `modules/${name}.ko`;
    await writeFile(join(options.target, file), await readModule(files, version, index.paths.get(name) ?? '', contents));
    written.push({ name, file });
  }
  return { plan, written };
}

/** Needs are those of `modules.dep`; a package as it is delivered has none, and then every module says its own. */
async function indexModules(
  files: KernelFiles,
  version: string,
  paths: readonly string[],
  wanted: readonly string[],
  contents: Map<string, Buffer>,
): Promise<ModuleIndex> {
  const byName = new Map(
    paths.flatMap((path) => {
      const name = moduleOfPath(path);
      return name === undefined ? [] : [[name, path] as const];
    }),
  );
  const builtIn = parseModulesBuiltin(((await files.readModuleFile(version, 'modules.builtin')) ?? Buffer.alloc(0)).toString('latin1'));
  const dep = await files.readModuleFile(version, 'modules.dep');
  const needs = dep === undefined ? await needsOf(files, version, byName, wanted, contents) : parseModulesDep(dep.toString('latin1'));
  return { paths: byName, builtIn, depends: (name) => needs.get(name) ?? [] };
}

async function needsOf(
  files: KernelFiles,
  version: string,
  byName: ReadonlyMap<string, string>,
  wanted: readonly string[],
  contents: Map<string, Buffer>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const needs = new Map<string, readonly string[]>();
  const ahead = [...wanted];
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    const path = byName.get(name);
    if (path === undefined || needs.has(name)) continue;
    const { depends } = readModuleInfo(await readModule(files, version, path, contents));
    needs.set(name, depends);
    ahead.push(...depends);
  }
  return needs;
}

async function readModule(files: KernelFiles, version: string, path: string, contents: Map<string, Buffer>): Promise<Buffer> {
  const known = contents.get(path);
  if (known !== undefined) return known;
  const packed = await files.readModuleFile(version, path);
  if (packed === undefined) throw malformedKernel(`its module ${path} is missing`);
  const format = path.endsWith('.xz') ? 'xz' : path.endsWith('.zst') ? 'zstd' : path.endsWith('.gz') ? 'gzip' : 'none';
  const bytes = await decompress(packed, format, MAX_MODULE_BYTES);
  if (!isElf(bytes)) throw malformedKernel(`its module ${path} is no module`);
  contents.set(path, bytes);
  return bytes;
}
