import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CodedError, messageOf } from '@firecrew/base';
import {
  type Architecture,
  type ArtifactFacts,
  type BuildImageOptions,
  buildImage,
  buildPayload,
  checkArtifactName,
  DEFAULT_IMAGE_NAME,
  extractKernel,
  KERNEL_NAME,
  linksOf,
  npmPackagesOf,
  type OnProgress,
  PAYLOAD_MOUNT,
  PAYLOAD_NAME,
  parseRecipe,
  payloadEntries,
  type StagingFolders,
  writePayload,
} from '@firecrew/rootfs';
import { UsageError } from '../exit-codes.ts';
import { chooseSource, type SourcePlace } from '../images/choose-source.ts';
import { locateGuestProgram } from '../images/guest-programs.ts';
import { imagesOf } from '../images/image-store.ts';
import { progressLines } from '../images/progress-lines.ts';
import { describe, mebibytes, viewOf } from '../images/render-images.ts';
import { whileWatched } from '../images/while-watched.ts';
import type { CommandContext } from './context.ts';

type Raw = Readonly<Record<string, unknown>>;
type Build = (folders: StagingFolders, signal: AbortSignal, onProgress: OnProgress) => Promise<ArtifactFacts>;

/** Folder of modules of the system's own kernels. */
const SYSTEM_MODULES = '/lib/modules';

/** `firecrew image build NAME`: a root file system from a source or a recipe. */
export async function imageBuildCommand(context: CommandContext, name: string | undefined, raw: Raw): Promise<number> {
  const architecture = architectureOf(raw.arch);
  const choice = readBuild(context, raw, architecture);
  return await make(context, name ?? DEFAULT_IMAGE_NAME, raw.json === true, async ({ target, work }, signal, onProgress) => {
    return await buildImage({ ...choice, architecture, target, work, signal, onProgress });
  });
}

/** `firecrew image kernel`: a kernel with its modules and the initrd. */
export async function imageKernelCommand(context: CommandContext, raw: Raw): Promise<number> {
  const path = resolve(context.cwd, textOf(raw.from) ?? '');
  const named = textOf(raw.modules);
  const modules = named === undefined ? (path.startsWith('/boot/') ? SYSTEM_MODULES : undefined) : resolve(context.cwd, named);
  const init = fileOption(context, raw.init) ?? locateGuestProgram('init');
  return await make(context, KERNEL_NAME, raw.json === true, async ({ target, work }, signal, onProgress) => {
    return await extractKernel({ path, modules, init, target, work, signal, onProgress });
  });
}

/** `firecrew image payload`: Node and the guest agent as a disk, or as a folder. */
export async function imagePayloadCommand(context: CommandContext, raw: Raw): Promise<number> {
  const node = fileOption(context, raw.node) ?? process.execPath;
  const agent = fileOption(context, raw.agent) ?? locateGuestProgram('agent');
  const level = readLevel(textOf(raw.level));
  const out = textOf(raw.out);
  if (out !== undefined && level !== undefined)
    throw new UsageError('usage_wrong', 'a folder is not packed', { action: 'Give either --out DIR or --level N.' });
  if (out !== undefined) return await writePayloadFolder(context, { node, agent }, resolve(context.cwd, out), raw.json === true);
  return await make(context, PAYLOAD_NAME, raw.json === true, async ({ target }, signal, onProgress) => {
    return await buildPayload({ node, agent, level, target, signal, onProgress });
  });
}

async function writePayloadFolder(
  { out }: CommandContext,
  programs: { readonly node: string; readonly agent: string },
  folder: string,
  json: boolean,
): Promise<number> {
  if (existsSync(folder))
    throw new UsageError('usage_wrong', `${folder} is there already`, { id: folder, action: 'Name a folder that is not there.' });
  return await whileWatched(out, async (signal) => {
    const entries = await payloadEntries({ ...programs, signal });
    await writePayload(entries, folder);
    const bytes = entries.reduce((sum, { content }) => sum + content.length, 0);
    if (json) out.line(JSON.stringify({ folder, mountPoint: PAYLOAD_MOUNT, bytes, files: entries.map(({ path }) => path) }));
    else out.line(`${folder}: ${entries.length} files, ${mebibytes(bytes)} MiB, made for ${PAYLOAD_MOUNT} of an image`);
    return 0;
  });
}

/** Builds, keeps, names and shows. */
async function make(context: CommandContext, name: string, json: boolean, build: Build): Promise<number> {
  checkArtifactName(name);
  const images = imagesOf(context);
  const { out } = context;
  return await whileWatched(out, async (signal) => {
    const onProgress = progressLines((line) => out.note(line));
    const made = await images.store.add(async (folders) => await build(folders, signal, onProgress), signal);
    await images.names.set(name, made.id);
    if (json) out.line(JSON.stringify(viewOf(made, await images.names.list())));
    else out.line(`${name} is ${made.id}: ${describe(made.manifest)}, ${mebibytes(made.sizeBytes)} MiB`);
    return 0;
  });
}

type BuildChoice = Pick<BuildImageOptions, 'source' | 'npm' | 'links' | 'environment'>;

function readBuild(context: CommandContext, raw: Raw, architecture: Architecture): BuildChoice {
  const [from, recipe] = [textOf(raw.from), textOf(raw.recipe)];
  if ((from === undefined) === (recipe === undefined))
    throw new UsageError('usage_wrong', 'an image is built from one source', { action: 'Give either --from SOURCE or --recipe FILE.' });
  if (recipe !== undefined) return readRecipeFile(resolve(context.cwd, recipe), raw, architecture);
  const options = {
    from: from ?? '',
    reference: textOf(raw.reference),
    keepOwners: raw.keepOwners === true,
    packages: listOf(raw.package),
    mirror: textOf(raw.mirror),
  };
  return { source: chooseSource(options, placeOf(resolve(context.cwd, options.from))) };
}

function readRecipeFile(file: string, raw: Raw, architecture: Architecture): BuildChoice {
  if (textOf(raw.reference) !== undefined || raw.keepOwners === true || listOf(raw.package).length > 0)
    throw new UsageError('usage_wrong', 'a recipe says all of its source itself', {
      action: 'Leave out --reference, --keep-owners and --package.',
    });
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new CodedError('recipe_unreadable', `the recipe ${file} cannot be read: ${messageOf(cause)}`, {
      id: file,
      action: 'Name a file; examples/images holds some.',
      cause,
    });
  }
  const recipe = parseRecipe(bytes);
  const { base } = recipe;
  const source = base.kind === 'suite' ? { ...base, mirror: textOf(raw.mirror) } : { ...base, path: resolve(dirname(file), base.path) };
  return { source, npm: npmPackagesOf(recipe, architecture), links: linksOf(recipe, architecture), environment: recipe.environment };
}

function placeOf(path: string): SourcePlace {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return { path, kind: 'none' };
  if (!stats.isDirectory()) return { path, kind: 'file' };
  return { path, kind: existsSync(join(path, 'oci-layout')) ? 'layout' : 'folder' };
}

function architectureOf(wanted: unknown): Architecture {
  const own = process.arch === 'arm64' ? 'arm64' : 'amd64';
  return wanted === 'arm64' || wanted === 'amd64' ? wanted : own;
}

function readLevel(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const level = /^[0-9]{1,2}$/.test(text) ? Number(text) : 0;
  if (level >= 1 && level <= 22) return level;
  throw new UsageError('usage_wrong', `${JSON.stringify(text)} is no level of zstd`, { action: 'Give a number from 1 to 22.' });
}

function fileOption({ cwd }: CommandContext, value: unknown): string | undefined {
  const path = textOf(value);
  return path === undefined ? undefined : resolve(cwd, path);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}
