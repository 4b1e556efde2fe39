import { chmod, mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError, messageOf } from '@firecrew/base';
import { ELF_MACHINES, readElf } from '../elf/read-elf.ts';
import { readInterpreter, setInterpreter, setLibraryFolder } from '../elf/redirect-elf.ts';
import { stripElf } from '../elf/strip-elf.ts';
import { checkInodes } from '../image/build-image.ts';
import { FIXED_TIME_SECONDS } from '../image/lay-out-source.ts';
import { writeSquashfs } from '../image/squashfs.ts';
import type { Architecture } from '../oci/choose-image.ts';
import type { OnProgress } from '../progress.ts';
import type { ArtifactFacts } from '../store/artifact-manifest.ts';
import type { EntryMetadata, TarEntry } from '../tar/tar-entry.ts';
import { paddingOf } from '../tar/tar-header.ts';
import { TAR_END_BYTES, writeTarHeader } from '../tar/write-tar.ts';
import { readToolOutput } from '../tools/run-tool.ts';
import { parseLoaderList } from './loader-list.ts';

/** The one file of a payload. */
export const PAYLOAD_FILE = 'payload.squashfs';
/** Folder of the guest that the payload is mounted at: Node names its loader and its libraries by it. */
export const PAYLOAD_MOUNT = '/opt/firecrew';
/** Most that the unpacked payload may have, in bytes. */
export const MAX_PAYLOAD_BYTES = 115 * 1024 * 1024;
/** Packed once and read at every boot: a high level pays, and reading costs the same. */
export const PAYLOAD_ZSTD_LEVEL = 19;
/** Larger blocks pack better; Node is read in long runs when it starts. */
export const PAYLOAD_BLOCK_BYTES = 1024 * 1024;

/** A small young generation: the agent moves streams, and its memory is the guest's. */
const AGENT_OPTIONS = ['--max-semi-space-size=1'];
const MODE = { program: 0o755, data: 0o644, folder: 0o755 } as const;

/** One file of the payload, below its mount point. */
export interface PayloadEntry {
  readonly path: string;
  readonly mode: number;
  readonly content: Buffer;
}

/** What a payload is made of. */
export interface BuildPayloadOptions {
  /** Node for Linux, dynamically linked; its libraries are taken from this machine. */
  readonly node: string;
  /** The guest agent in one file. */
  readonly agent: string;
  /** An empty folder that gets {@link PAYLOAD_FILE}. */
  readonly target: string;
  /** Level of zstd, 1 to 22; default {@link PAYLOAD_ZSTD_LEVEL}, which takes about a minute. */
  readonly level?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: OnProgress | undefined;
}

/**
 * The files of a payload: Node without what only debuggers read, its loader and libraries, the guest agent, and `run`, which says how it is
 * started. Node finds loader and libraries by itself, so it runs with an empty environment, can start itself again, and leaves nothing to
 * programs of the image. Throws `source_unreadable`, `elf_malformed`, `library_missing`, `loader_answer_unknown`, `tool_failed`.
 */
export async function payloadEntries({
  node,
  agent,
  signal,
}: Pick<BuildPayloadOptions, 'node' | 'agent' | 'signal'>): Promise<PayloadEntry[]> {
  const original = await read(node);
  const loader = readInterpreter(original);
  if (loader === undefined) throw notLinked(node);
  const listed = await readToolOutput({ command: loader, packages: 'libc6' }, ['--list', node], signal);
  const libraries = await Promise.all(
    parseLoaderList(listed).map(async ({ name, path }) => ({ path: `lib/${name}`, mode: MODE.program, content: await read(path) })),
  );
  const loaderPath = 'lib/ld.so';
  const program = setInterpreter(setLibraryFolder(stripElf(original), `${PAYLOAD_MOUNT}/lib`), `${PAYLOAD_MOUNT}/${loaderPath}`);
  const run = [`${PAYLOAD_MOUNT}/bin/node`, ...AGENT_OPTIONS, `${PAYLOAD_MOUNT}/guest-agent.cjs`];
  return [
    { path: 'bin/node', mode: MODE.program, content: program },
    { path: 'guest-agent.cjs', mode: MODE.data, content: await read(agent) },
    { path: loaderPath, mode: MODE.program, content: await read(loader) },
    ...libraries.filter(({ path }) => path !== `lib/${loader.split('/').at(-1)}`),
    { path: 'run', mode: MODE.data, content: Buffer.from(run.map((line) => `${line}\n`).join('')) },
  ].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Writes the files of a payload into a folder. */
export async function writePayload(entries: readonly PayloadEntry[], folder: string): Promise<void> {
  for (const { path, mode, content } of entries) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content, { flag: 'wx' });
    await chmod(join(folder, path), mode);
  }
}

/**
 * Packs a payload as a read-only file system. The same Node, libraries and agent give the same bytes. Throws as {@link payloadEntries} and
 * `payload_too_large`, `tool_missing`.
 */
export async function buildPayload(options: BuildPayloadOptions): Promise<ArtifactFacts & { readonly kind: 'payload' }> {
  const { target, node, signal } = options;
  options.onProgress?.({ step: 'reading Node and its libraries' });
  const entries = await payloadEntries(options);
  const unpackedBytes = entries.reduce((sum, { content }) => sum + content.length, 0);
  if (unpackedBytes > MAX_PAYLOAD_BYTES)
    throw new CodedError('payload_too_large', `the payload has ${unpackedBytes} bytes; ${MAX_PAYLOAD_BYTES} are allowed`, {
      id: node,
      action: 'Build it with the Node that firecrew comes with.',
    });
  options.onProgress?.({ step: 'packing the payload' });
  const file = join(target, PAYLOAD_FILE);
  const folders = [...new Set(entries.map(({ path }) => dirname(path)).filter((path) => path !== '.'))].sort();
  const packing = { level: options.level ?? PAYLOAD_ZSTD_LEVEL, blockBytes: PAYLOAD_BLOCK_BYTES, signal };
  await writeSquashfs(archiveOf(folders, entries), file, metadata(MODE.folder), packing);
  await checkInodes(file, 1 + folders.length + entries.length);
  const nodeVersion = (await readToolOutput({ command: node, packages: 'nodejs' }, ['--version'], signal)).trim();
  const architecture = architectureOf(await read(node));
  return { kind: 'payload', architecture, format: 'squashfs', mountPoint: PAYLOAD_MOUNT, nodeVersion, unpackedBytes };
}

async function* archiveOf(folders: readonly string[], entries: readonly PayloadEntry[]): AsyncGenerator<Buffer> {
  const plain = { linkName: '', deviceMajor: 0, deviceMinor: 0 };
  const entry = (path: string, mode: number, size: number): TarEntry => ({
    ...plain,
    ...metadata(mode),
    type: path.endsWith('/') ? 'directory' : 'file',
    path,
    size,
  });
  yield writeTarHeader(entry('./', MODE.folder, 0));
  for (const folder of folders) yield writeTarHeader(entry(`${folder}/`, MODE.folder, 0));
  for (const { path, mode, content } of entries) {
    yield writeTarHeader(entry(path, mode, content.length));
    yield content;
    yield Buffer.alloc(paddingOf(content.length));
  }
  yield Buffer.alloc(TAR_END_BYTES);
}

function metadata(mode: number): EntryMetadata {
  return { mode, uid: 0, gid: 0, mtime: FIXED_TIME_SECONDS, xattrs: new Map() };
}

function architectureOf(node: Buffer): Architecture {
  const { machine } = readElf(node);
  if (machine === ELF_MACHINES.amd64) return 'amd64';
  if (machine === ELF_MACHINES.arm64) return 'arm64';
  throw new CodedError('elf_malformed', `Node is for a processor of the number ${machine}, which guests do not have`, {
    action: 'Build the payload with Node for x86-64 or arm64.',
  });
}

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(await realpath(path));
  } catch (cause) {
    throw new CodedError('source_unreadable', `${path} cannot be read: ${messageOf(cause)}`, {
      id: path,
      action: 'Check that it is there, is a plain file, and may be read by this account.',
      cause,
    });
  }
}

function notLinked(node: string): CodedError {
  return new CodedError('elf_malformed', `${node} is a static program: it cannot load what its scripts may need`, {
    id: node,
    action: 'Build the payload with the Node that firecrew comes with.',
  });
}
