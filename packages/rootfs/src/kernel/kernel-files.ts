import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { DEFAULT_IMAGE_LIMITS } from '../limits.ts';
import { type ByteBudget, spoolArchive } from '../oci/spool-archive.ts';
import { type FileSource, openFileSource, partOf, streamSource } from '../tar/byte-source.ts';
import { type ByteSource, type ScannedEntry, scanTar } from '../tar/scan-tar.ts';
import { runTool, TOOLS } from '../tools/run-tool.ts';
import { malformedPackage } from './package-errors.ts';
import { listArMembers } from './parse-ar.ts';

/** Bytes of one file of a kernel that is read whole. */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** A kernel and its modules, wherever they lie. */
export interface KernelFiles {
  /** Path of the bzImage, for messages. */
  readonly image: string;
  readImage(): Promise<Buffer>;
  /** Paths below `lib/modules/VERSION`; none where the kernel came without. */
  listModules(version: string): Promise<readonly string[]>;
  /** A file below it; undefined where there is none. */
  readModuleFile(version: string, path: string): Promise<Buffer | undefined>;
  close(): Promise<void>;
}

/** A kernel that lies as a file on this machine, with its modules in a folder that holds one folder for each version. */
export function kernelOfFile(image: string, modules: string | undefined): KernelFiles {
  const read = async (path: string): Promise<Buffer> => {
    const { size } = await stat(path);
    if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes; ${MAX_FILE_BYTES} are allowed`);
    return await readFile(path);
  };
  return {
    image,
    readImage: async () =>
      await read(image).catch((cause: unknown) => {
        throw unreadable(image, cause);
      }),
    listModules: async (version) => {
      if (modules === undefined) return [];
      const folder = join(modules, version);
      try {
        return await readdir(folder, { recursive: true });
      } catch (cause) {
        throw unreadable(folder, cause);
      }
    },
    readModuleFile: async (version, path) => {
      const file = join(modules ?? '/', version, path);
      return await read(file).catch((cause: unknown) => {
        if (codeOf(cause) === 'ENOENT') return undefined;
        throw unreadable(file, cause);
      });
    },
    close: async () => undefined,
  };
}

/** The kernel of a package of Debian; it is not installed and nothing of it is run. Throws `package_malformed`, `tool_missing`, `tool_failed`. */
export async function kernelOfPackage(path: string, work: string, budget: ByteBudget, signal?: AbortSignal): Promise<KernelFiles> {
  const file = join(work, 'package.tar');
  await spoolData(path, file, budget, signal);
  const archive = await openFileSource(file);
  try {
    const entries = await entriesOf(archive);
    const images = [...entries.keys()].filter((name) => name.startsWith('boot/vmlinuz-'));
    const [image] = images;
    if (image === undefined || images.length > 1) throw malformedPackage(`it holds ${images.length} kernels`);
    return filesOf(archive, entries, image);
  } catch (error) {
    await archive.close();
    throw error;
  }
}

function filesOf(archive: FileSource, entries: ReadonlyMap<string, ScannedEntry>, image: string): KernelFiles {
  const read = async (name: string): Promise<Buffer | undefined> => {
    const entry = entries.get(name);
    if (entry === undefined) return undefined;
    if (entry.size > MAX_FILE_BYTES) throw malformedPackage(`${name} has ${entry.size} bytes`);
    return Buffer.from(await archive.read(entry.offset, entry.size));
  };
  const folderOf = (version: string): string | undefined =>
    ['lib/modules', 'usr/lib/modules']
      .map((at) => `${at}/${version}/`)
      .find((at) => [...entries.keys()].some((name) => name.startsWith(at)));
  return {
    image,
    readImage: async () => (await read(image)) ?? Buffer.alloc(0),
    listModules: async (version) => {
      const folder = folderOf(version);
      return folder === undefined
        ? []
        : [...entries.keys()].filter((name) => name.startsWith(folder)).map((name) => name.slice(folder.length));
    },
    readModuleFile: async (version, path) => await read(`${folderOf(version) ?? ''}${path}`),
    close: async () => await archive.close(),
  };
}

async function entriesOf(archive: ByteSource): Promise<ReadonlyMap<string, ScannedEntry>> {
  const entries = new Map<string, ScannedEntry>();
  for await (const entry of scanTar(archive, DEFAULT_IMAGE_LIMITS)) {
    if (entry.type === 'file') entries.set(entry.path.replace(/^(\.?\/)+/, ''), entry);
  }
  return entries;
}

async function spoolData(path: string, file: string, budget: ByteBudget, signal: AbortSignal | undefined): Promise<void> {
  const source = await openFileSource(path);
  try {
    const member = (await listArMembers(source)).find(({ name }) => name === 'data.tar' || name.startsWith('data.tar.'));
    if (member === undefined) throw malformedPackage('it holds no data');
    const options = { algorithm: 'sha256', budget, signal } as const;
    const stream = streamSource(partOf(source, member.offset, member.size));
    const suffix = member.name.slice('data.tar'.length);
    if (suffix === '.xz') {
      const output = async (from: Readable): Promise<void> => void (await spoolArchive(from, file, { ...options, compression: 'none' }));
      await runTool({ tool: TOOLS.xz, args: ['--decompress', '--stdout', '--format=xz'], input: stream, output, signal });
    } else if (suffix === '' || suffix === '.gz' || suffix === '.zst') {
      const compression = suffix === '' ? 'none' : suffix === '.gz' ? 'gzip' : 'zstd';
      await spoolArchive(stream, file, { ...options, compression });
    } else throw malformedPackage(`its data is compressed as ${suffix}`);
  } finally {
    await source.close();
  }
}

/** The first bytes of a file; tells a package from a kernel. */
export async function isPackage(path: string): Promise<boolean> {
  const parts: Buffer[] = [];
  try {
    for await (const part of createReadStream(path, { end: 7 })) parts.push(part as Buffer);
  } catch (cause) {
    throw unreadable(path, cause);
  }
  return Buffer.concat(parts).toString('latin1') === '!<arch>\n';
}

function unreadable(path: string, cause: unknown): CodedError {
  return new CodedError('source_unreadable', `${path} cannot be read: ${messageOf(cause)}`, {
    id: path,
    action: 'Check that it is there, is a plain file, and may be read by this account.',
    cause,
  });
}
