import { mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '@firecrew/base';
import { detectSetup } from '@firecrew/harness';
import type { CreateMissionInput, RepositorySource } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { UsageError } from '../exit-codes.ts';
import { type AgentPlan, digestOf, planAgent } from './agent-files.ts';
import { expandPhases } from './expand-phases.ts';
import { NPM_REGISTRY_WORD, type NpmRegistry, readNpmSettings, resolveRegistry, strangeAuthorities, withRegistry } from './npm-registry.ts';
import { type LocalTree, readTree, uploadTree } from './read-tree.ts';
import { type AddressRule, type RunOptions, titleOf } from './run-options.ts';

/** Where the caller stands. */
export interface CallerPlace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A folder of ours that belongs to no tree. */
  readonly scratch: string;
}

/** All that is known before anything leaves this machine. */
export interface PreparedMission {
  readonly options: RunOptions;
  readonly task: string;
  readonly tree: LocalTree | undefined;
  readonly agent: AgentPlan;
  readonly setup: string | undefined;
  readonly registry: NpmRegistry | undefined;
  readonly phases: CreateMissionInput['phases'];
  /** What to tell the caller. */
  readonly notes: readonly string[];
}

/** Reads task, tree, agent and registry; sends nothing. Throws {@link UsageError} for what cannot be meant. */
export async function prepareMission(options: RunOptions, place: CallerPlace): Promise<PreparedMission> {
  mkdirSync(place.scratch, { recursive: true, mode: 0o700 });
  const task = await readTask(options, place);
  const tree =
    options.repository.kind === 'path' ? await readTree(resolve(place.cwd, options.repository.path), options, place.env) : undefined;
  const paths = new Set(tree?.list.files.map((file) => file.path.toString('utf8')));
  const pathFolders = (place.env.FIRECREW_CALLER_PATH ?? place.env.PATH ?? '').split(':').filter((folder) => folder !== '');
  const agent = planAgent({
    command: options.agentCommand,
    agentFiles: options.agentFiles,
    cwd: place.cwd,
    pathFolders,
    treeHas: (path) => paths.has(path),
  });
  const npm = options.setupAllow.includes(NPM_REGISTRY_WORD) ? await readNpmSettings(place.env, place.scratch) : undefined;
  const registry = npm === undefined ? undefined : await resolveRegistry(npm.registry);
  const found = planSetup(options, paths);
  const setup = found.command === undefined || registry === undefined ? found.command : withRegistry(found.command, registry.url);
  const phases = expandPhases({ task, setup, check: options.check, allowEmpty: options.allowEmpty }, options.recipe);
  const notes = [
    ...(tree?.notes ?? []),
    ...found.notes,
    ...layerNotes(options.setupLayerFiles, setup, tree === undefined ? undefined : paths),
  ];
  if (agent.notice !== undefined) notes.push(agent.notice);
  if (registry !== undefined) notes.push(`the set-up may reach the npm registry ${registry.entry} (${registry.rule.addresses.join(', ')})`);
  const strange = npm === undefined ? undefined : strangeAuthorities(npm, place.env);
  if (strange !== undefined) notes.push(`${strange.detail} (${strange.fix})`);
  return { options, task, tree, agent, setup, registry, phases, notes };
}

/** The set-up: given, switched off, or by the lock file in the root of the tree. */
export function planSetup(
  options: Pick<RunOptions, 'setup' | 'setupAllow' | 'repository'>,
  paths: ReadonlySet<string>,
): { command: string | undefined; notes: string[] } {
  if (options.setup === 'none') return { command: undefined, notes: [] };
  if (options.setup !== 'detect') return { command: options.setup.command, notes: [] };
  if (options.repository.kind !== 'path') return { command: undefined, notes: [] };
  const detected = detectSetup([...paths].filter((path) => !path.includes('/')));
  if (detected.command === undefined) return { command: undefined, notes: detected.reason.includes('without') ? [detected.reason] : [] };
  const notes = [`${detected.reason} (else: --setup COMMAND or --no-setup)`];
  if (options.setupAllow.length === 0 && detected.hosts.length > 0)
    notes.push(
      `the set-up may reach nothing; allow what it needs, such as ${detected.hosts.map((host) => `--setup-allow ${host}`).join(' ')}`,
    );
  return { command: detected.command, notes };
}

/** What a caller who wants a layer may not expect. */
function layerNotes(files: readonly string[], setup: string | undefined, paths: ReadonlySet<string> | undefined): string[] {
  if (files.length === 0) return [];
  if (setup === undefined) return ['there is no set-up that could be kept as a layer'];
  const absent = paths === undefined ? [] : files.filter((file) => !paths.has(file));
  return absent.length === 0 ? [] : [`not in the tree, which is a part of what names the layer: ${absent.join(', ')}`];
}

/** Uploads what travels and gives the request that creates the mission. */
export async function uploadMission(prepared: PreparedMission, client: FirecrewClient, place: CallerPlace): Promise<CreateMissionInput> {
  const { agent } = prepared;
  const files: { name: string; digest: string; bytes: number }[] = [];
  for (const file of agent.files) {
    const { digest, bytes } = await client.upload(file.path, await digestOf(file.path));
    files.push({ name: file.name, digest, bytes });
  }
  return missionRequest(prepared, await sourceOf(prepared, client, place), files);
}

/** The request of a mission, from what was prepared and uploaded. */
export function missionRequest(
  prepared: PreparedMission,
  repository: RepositorySource,
  files: readonly { name: string; digest: string; bytes: number }[],
): CreateMissionInput {
  const { options, task, agent } = prepared;
  const { driver, timeoutMs, checkTimeoutMs, setupTimeoutMs } = options;
  return {
    title: options.title ?? titleOf(task),
    repository,
    phases: prepared.phases,
    agent: { ...(options.backend === undefined ? {} : { backend: options.backend }), command: agent.command, files: [...files] },
    egress: egressRequest(prepared),
    ...(options.learn === undefined ? {} : { learn: { ...options.learn } }),
    allowUnisolated: options.allowUnisolated,
    ...(driver === undefined ? {} : { driver }),
    // A server of before this field refuses what it does not know.
    ...(options.needsModelRoute ? { needsModelRoute: true } : {}),
    ...(timeoutMs === undefined ? {} : { turnTimeoutMs: timeoutMs }),
    ...(checkTimeoutMs === undefined ? {} : { checkTimeoutMs }),
    ...(setupTimeoutMs === undefined ? {} : { setupTimeoutMs }),
    // A server of before layers refuses what it does not know.
    ...(options.setupLayerFiles.length === 0 ? {} : { setupLayerFiles: [...options.setupLayerFiles] }),
  };
}

/** What the mission asks to reach. */
export function egressRequest({
  options,
  registry,
}: Pick<PreparedMission, 'options' | 'registry'>): NonNullable<CreateMissionInput['egress']> {
  const setupAllow = options.setupAllow.filter((entry) => entry !== NPM_REGISTRY_WORD);
  if (registry !== undefined) setupAllow.push(registry.entry);
  return {
    allow: [...options.allow],
    setupAllow,
    addressRules: mergeRules([...options.addressRules, ...(registry === undefined ? [] : [registry.rule])]),
    // A server of before refuses what it does not know.
    ...(options.strictPolicy ? { strict: true } : {}),
  };
}

function mergeRules(rules: readonly AddressRule[]): { host: string; addresses: string[] }[] {
  const merged = new Map<string, Set<string>>();
  for (const { host, addresses } of rules) merged.set(host, new Set([...(merged.get(host) ?? []), ...addresses]));
  return [...merged].map(([host, addresses]) => ({ host, addresses: [...addresses] }));
}

async function sourceOf(prepared: PreparedMission, client: FirecrewClient, place: CallerPlace): Promise<RepositorySource> {
  const { repository, push } = prepared.options;
  if (repository.kind === 'url') return { kind: 'url', url: repository.url, branch: repository.branch, push: push !== undefined };
  if (prepared.tree === undefined) return { kind: 'none' };
  return await uploadTree(prepared.tree, client, place.scratch, place.env);
}

async function readTask(options: RunOptions, place: CallerPlace): Promise<string> {
  if ('text' in options.task) return options.task.text;
  const { file } = options.task;
  try {
    const text = await readFile(file === '-' ? '/dev/stdin' : resolve(place.cwd, file), 'utf8');
    if (text.trim() !== '') return text;
  } catch (cause) {
    throw new UsageError('usage_wrong', `the task file ${file} cannot be read: ${messageOf(cause)}`, { id: file, cause });
  }
  throw new UsageError('usage_wrong', `the task file ${file} is empty`, { id: file, action: 'Write down what is to be done.' });
}
