import { isIP } from 'node:net';
import { type Driver, driverSchema, layerFilesSchema, seatRoleSchema } from '@firecrew/protocol';
import { UsageError } from '../exit-codes.ts';
import type { RecipeChoice } from './expand-phases.ts';
import { parseDuration } from './parse-duration.ts';

/** Where a mission's files come from. */
export type RepositoryChoice =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string; readonly branch: string | null }
  | { readonly kind: 'none' };

/** A `run`, read from its command line. */
export interface RunOptions {
  readonly repository: RepositoryChoice;
  readonly task: { readonly text: string } | { readonly file: string };
  readonly title: string | undefined;
  readonly check: string | undefined;
  /** A command; `detect` by the lock file; `none`. */
  readonly setup: { readonly command: string } | 'detect' | 'none';
  /** Files of the tree that the set-up reads, when it is to be kept as a layer; else empty. */
  readonly setupLayerFiles: readonly string[];
  readonly allowEmpty: boolean;
  /** Phases by a recipe rather than one that does the task. */
  readonly recipe: RecipeChoice | undefined;
  /** What the agent runs as; the server's default where it is not named. */
  readonly backend: string | undefined;
  readonly agentCommand: string;
  readonly agentFiles: readonly string[];
  /** Role whose seat the mission works under. */
  readonly seat: string | undefined;
  readonly driver: Driver | undefined;
  readonly allowUnisolated: boolean;
  /** Keep the mission to nodes with a model route. */
  readonly needsModelRoute: boolean;
  readonly allow: readonly string[];
  readonly setupAllow: readonly string[];
  readonly addressRules: readonly AddressRule[];
  /** What the policy leaves out of the above is an error rather than a warning. */
  readonly strictPolicy: boolean;
  /** A learning run, and whether it may have credentials. */
  readonly learn: { readonly withCredentials: boolean } | undefined;
  readonly requireClean: boolean;
  /** Fetch the history that a shallow clone lacks. */
  readonly unshallow: boolean;
  readonly include: readonly string[];
  readonly includeSecret: readonly string[];
  readonly push: string | undefined;
  readonly pushDirty: boolean;
  readonly timeoutMs: number | undefined;
  readonly checkTimeoutMs: number | undefined;
  readonly setupTimeoutMs: number | undefined;
  readonly wait: boolean;
  readonly json: boolean;
}

/** Addresses that a named host may have though they are not public. */
export interface AddressRule {
  readonly host: string;
  readonly addresses: readonly string[];
}

type Raw = Readonly<Record<string, unknown>>;

/** Reads the options of `run`. Throws {@link UsageError} `usage_wrong` for what cannot be meant. */
export function readRunOptions(raw: Raw, env: Readonly<Record<string, string | undefined>>): RunOptions {
  const repository = readRepository(raw);
  const push = textOf(raw.push);
  if (push !== undefined && repository.kind === 'none') throw wrong('--push needs a repository', 'Leave out --push or --no-repo.');
  const agentCommand = textOf(raw.agentCmd);
  if (agentCommand === undefined || agentCommand.trim() === '')
    throw wrong('no agent was named', 'Say how it is started, such as --agent-cmd \'my-agent "$FIRECREW_TASK_FILE"\'.');
  if (repository.kind !== 'path' && raw.unshallow === true)
    throw wrong('--unshallow concerns a folder of this machine', 'Leave it out: the whole history of a URL is fetched.');
  if (repository.kind !== 'path' && (raw.requireClean === true || listOf(raw.include).length + listOf(raw.includeSecret).length > 0))
    throw wrong('--require-clean and --include concern a folder of this machine', 'Leave them out, or name a folder with --repo.');
  return {
    repository,
    task: readTask(raw),
    title: textOf(raw.title),
    check: textOf(raw.check),
    setup: raw.setup === false ? 'none' : typeof raw.setup === 'string' ? { command: raw.setup } : 'detect',
    setupLayerFiles: readLayerFiles(raw),
    allowEmpty: raw.allowEmpty === true,
    recipe: readRecipe(raw),
    backend: textOf(raw.backend),
    agentCommand,
    agentFiles: listOf(raw.agentFile),
    seat: readSeat(raw),
    driver: driverSchema.safeParse(raw.driver).data,
    allowUnisolated: raw.allowUnisolated === true || env.FIRECREW_ALLOW_UNISOLATED === '1',
    needsModelRoute: raw.needsModelRoute === true,
    allow: listOf(raw.allow),
    setupAllow: listOf(raw.setupAllow),
    addressRules: readAddressRules(listOf(raw.allowAddress)),
    strictPolicy: raw.strictPolicy === true,
    learn: readLearn(raw),
    requireClean: raw.requireClean === true,
    unshallow: raw.unshallow === true,
    include: listOf(raw.include),
    includeSecret: listOf(raw.includeSecret),
    push,
    pushDirty: raw.pushDirty === true,
    timeoutMs: durationOf(raw.timeout, '--timeout'),
    checkTimeoutMs: durationOf(raw.checkTimeout, '--check-timeout'),
    setupTimeoutMs: durationOf(raw.setupTimeout, '--setup-timeout'),
    wait: raw.wait !== false,
    json: raw.json === true,
  };
}

function readLearn(raw: Raw): RunOptions['learn'] {
  const withCredentials = raw.learnWithCredentials === true;
  if (raw.learn !== true) {
    if (withCredentials) throw wrong('--learn-with-credentials is for a learning run', 'Add --learn, or leave it out.');
    return undefined;
  }
  const held = [
    ...(textOf(raw.seat) === undefined ? [] : ['--seat']),
    ...(listOf(raw.includeSecret).length === 0 ? [] : ['--include-secret']),
    ...(textOf(raw.push) === undefined ? [] : ['--push']),
  ];
  if (held.length > 0 && !withCredentials)
    throw wrong(
      `a learning run reaches more than missions do, and ${held.join(' and ')} would give it credentials`,
      'Leave that out, or say --learn-with-credentials.',
    );
  return { withCredentials };
}

/** Whether a `--repo` is a URL rather than a folder: a scheme, or `user@host:path` as git writes it. */
export function isRepositoryUrl(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(text) || /^[^/\s@]+@[^/\s:]+:/.test(text);
}

function readRepository(raw: Raw): RepositoryChoice {
  const branch = textOf(raw.branch);
  if (raw.repo === false || typeof raw.repo !== 'string' || raw.repo === '') {
    if (raw.repo !== false)
      throw wrong('no repository was named', 'Say which one with --repo PATH or --repo URL, or start from nothing with --no-repo.');
    if (branch !== undefined) throw wrong('--branch needs a repository URL', 'Leave out --branch or --no-repo.');
    return { kind: 'none' };
  }
  if (isRepositoryUrl(raw.repo) && !/^https:\/\//i.test(raw.repo)) throw notHttps(raw.repo);
  if (isRepositoryUrl(raw.repo)) return { kind: 'url', url: raw.repo, branch: branch ?? null };
  if (branch !== undefined)
    throw wrong('--branch goes with a URL; a folder starts from its HEAD', 'Check out the branch and leave out --branch.');
  return { kind: 'path', path: raw.repo };
}

function notHttps(url: string): UsageError {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(url)?.[1]?.toLowerCase() ?? 'ssh';
  return wrong(
    `${scheme} URLs are not supported yet: a server reaches repositories by https alone`,
    'Use the https URL, or clone it yourself and give the path of the clone with --repo.',
  );
}

function readSeat(raw: Raw): string | undefined {
  const role = textOf(raw.seat);
  if (role === undefined || seatRoleSchema.safeParse(role).success) return role;
  throw wrong(`--seat ${JSON.stringify(role.slice(0, 60))} is no name of a role`, 'List seats with: firecrew seat list');
}

function readTask(raw: Raw): RunOptions['task'] {
  const text = textOf(raw.task);
  const file = textOf(raw.taskFile);
  if (text !== undefined && file !== undefined) throw wrong('both --task and --task-file were given', 'Give one of them.');
  if (file !== undefined) return { file };
  if (text === undefined || text.trim() === '')
    throw wrong('no task was given', 'Say what is to be done with --task TEXT or --task-file FILE.');
  return { text };
}

function readLayerFiles(raw: Raw): string[] {
  const files = listOf(raw.setupLayer).map((file) => file.replace(/^(\.\/)+/, ''));
  if (files.length > 0 && raw.setup === false)
    throw wrong('--setup-layer keeps a set-up, and --no-setup runs none', 'Leave out one of them.');
  const parsed = layerFilesSchema.safeParse(files);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const named = typeof issue?.path[0] === 'number' ? ` ${JSON.stringify(files[issue.path[0]])}` : '';
  throw wrong(`--setup-layer${named}: ${issue?.message ?? 'is no list of files'}`, 'Name files by their path from the root of the tree.');
}

function readRecipe(raw: Raw): RecipeChoice | undefined {
  const name = textOf(raw.recipe);
  const entries = listOf(raw.input);
  if (name === undefined) {
    if (entries.length > 0) throw wrong('--input goes with --recipe', 'Name a recipe; firecrew recipe list shows them.');
    return undefined;
  }
  if (raw.allowEmpty === true) throw wrong('--allow-empty is said by the recipe for each phase', 'Leave out --allow-empty or --recipe.');
  const inputs: Record<string, string> = {};
  for (const entry of entries) {
    const [, key, value] = /^([a-z]{1,32})=(.*)$/s.exec(entry) ?? [];
    if (key === undefined || value === undefined || Object.hasOwn(inputs, key))
      throw wrong(
        `--input ${JSON.stringify(entry)} is not NAME=TEXT, or is given twice`,
        `Look at its inputs: firecrew recipe show ${name}`,
      );
    if (key === 'task' || key === 'setup' || key === 'check')
      throw wrong(`--input ${key} has an option of its own`, `Give it with --${key}.`);
    inputs[key] = value;
  }
  return { name, inputs };
}

/** `HOST=ADDRESS` entries, gathered by host. An address may be a CIDR range. */
export function readAddressRules(entries: readonly string[]): AddressRule[] {
  const rules = new Map<string, string[]>();
  for (const entry of entries) {
    const at = entry.indexOf('=');
    const host = entry.slice(0, Math.max(at, 0)).trim().toLowerCase();
    const address = entry.slice(at + 1).trim();
    const [base = '', bits] = address.split('/');
    if (at < 1 || host === '' || host.includes(':') || isIP(base) === 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits)))
      throw wrong(
        `--allow-address ${JSON.stringify(entry)} is not HOST=ADDRESS`,
        'Write a name without a port, and an IP address or range.',
      );
    rules.set(host, [...(rules.get(host) ?? []), address]);
  }
  return [...rules].map(([host, addresses]) => ({ host, addresses }));
}

/** A title from a task: its first line that says something. At most 200 characters. */
export function titleOf(task: string): string {
  const line = task.split('\n').find((text) => text.trim() !== '') ?? 'untitled';
  return (
    line
      .replace(/^[#\s]+/, '')
      .trim()
      .slice(0, 200) || 'untitled'
  );
}

function durationOf(value: unknown, flag: string): number | undefined {
  if (typeof value !== 'string') return undefined;
  const ms = parseDuration(value);
  if (ms === undefined)
    throw wrong(`${flag} ${JSON.stringify(value)} is no duration`, 'Write it with units, such as 90s, 30m or 1h30m; at most 7d.');
  return ms;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

function wrong(message: string, action: string): UsageError {
  return new UsageError('usage_wrong', message, { action });
}
