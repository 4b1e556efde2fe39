import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join, resolve, sep } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { parse as parseToml } from 'smol-toml';
import * as z from 'zod';

/** Clients whose own configuration may name hosts of a policy: `registry:npm` and so on. */
export const REGISTRY_KINDS = ['npm', 'pip', 'apt', 'cargo', 'go'] as const;
export type RegistryKind = (typeof REGISTRY_KINDS)[number];

type Environment = Readonly<Record<string, string | undefined>>;

/** A folder that belongs to no project, so that nothing but the operator's own configuration is read. */
const NEUTRAL_FOLDER = '/';
const CLIENT_TIMEOUT_MS = 20_000;
/** What a client may set by variables that a script of some project passed on. */
const OF_PROJECTS = /^(npm_|GOFLAGS$|GOENV$)/i;

/** The entries of an allow-list for the hosts that a client of this account is configured with. Throws `registry_unresolvable`. */
export async function findRegistry(kind: RegistryKind, env: Environment): Promise<readonly string[]> {
  const urls = await SOURCES[kind](env);
  const entries = [...new Set(urls.map((url) => entryOf(kind, url)))];
  if (entries.length === 0) throw unresolvable(kind, 'no host is configured', ADVICE[kind]);
  return entries;
}

const ADVICE: Readonly<Record<RegistryKind, string>> = {
  npm: 'See `npm config get registry`, or name the host.',
  pip: 'Set it with `pip config set global.index-url URL`, or name the hosts of index and files.',
  apt: 'See `apt-get indextargets`, or name the host.',
  cargo: 'Replace crates-io in the `config.toml` of cargo, or name the hosts of index and files.',
  go: 'Set it with `go env -w GOPROXY=URL`, or name the host.',
};

const SOURCES: Readonly<Record<RegistryKind, (env: Environment) => Promise<readonly string[]>>> = {
  npm: async (env) => linesOf(await ask('npm', env, 'npm', ['config', 'get', 'registry'])),
  pip: async (env) =>
    linesOf(await ask('pip', env, 'python3', ['-m', 'pip', 'config', 'list'])).flatMap((line) => {
      const value = /^[\w:]+\.(?:extra-)?index-url=(['"])(.*)\1$/.exec(line)?.[2];
      return value === undefined ? [] : value.split(/\\n|\s+/).filter((part) => part !== '');
    }),
  apt: async (env) => linesOf(await ask('apt', env, 'apt-get', ['indextargets', '--format', '$(REPO_URI)'])),
  cargo: cargoUrls,
  go: async (env) => {
    const [proxies = ''] = linesOf(await ask('go', env, 'go', ['env', 'GOPROXY']));
    return proxies.split(/[,|]/).filter((part) => !['', 'direct', 'off'].includes(part));
  },
};

const cargoSchema = z.object({
  source: z.record(z.string(), z.object({ registry: z.string().optional(), 'replace-with': z.string().optional() })).default({}),
  registries: z.record(z.string(), z.object({ index: z.string().optional() })).default({}),
});

/** Cargo has no stable command that tells its configuration, so the account's file is read as cargo documents it. */
async function cargoUrls(env: Environment): Promise<readonly string[]> {
  if (env.CARGO_HOME !== undefined && !isAbsolute(env.CARGO_HOME))
    throw unresolvable('cargo', `CARGO_HOME is ${JSON.stringify(env.CARGO_HOME)}, which is another folder in each tree`, ADVICE.cargo);
  const folder = env.CARGO_HOME ?? join(env.HOME ?? homedir(), '.cargo');
  const file = join(folder, 'config.toml');
  let parsed: ReturnType<typeof cargoSchema.safeParse>;
  try {
    parsed = cargoSchema.safeParse(parseToml(await readFile(file, 'utf8')));
  } catch (cause) {
    throw unresolvable(
      'cargo',
      codeOf(cause) === 'ENOENT' ? `${file} is not there` : `${file}: ${firstLine(messageOf(cause))}`,
      ADVICE.cargo,
    );
  }
  if (!parsed.success) throw unresolvable('cargo', `${file} is not understood`, ADVICE.cargo);
  const { source, registries } = parsed.data;
  const replaced = new Set<string>();
  // A chain of replacements that comes back to where it was is cargo's own error; here it only ends.
  for (let name = source['crates-io']?.['replace-with']; name !== undefined && !replaced.has(name); name = source[name]?.['replace-with'])
    replaced.add(name);
  const last = [...replaced].at(-1);
  const mirror = last === undefined ? undefined : (source[last]?.registry ?? registries[last]?.index);
  return [mirror, ...Object.values(registries).map(({ index }) => index)].filter((url) => url !== undefined);
}

/** Runs a client in a folder of no project, without what a project's script may have set. */
async function ask(kind: RegistryKind, env: Environment, program: string, args: readonly string[]): Promise<string> {
  const own = Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== undefined && !OF_PROJECTS.test(name)));
  const clean = { ...own, ...(env.PATH === undefined ? {} : { PATH: withoutTrees(env.PATH) }) };
  return await new Promise((resolve, reject) => {
    const options = { cwd: NEUTRAL_FOLDER, env: clean as Record<string, string>, timeout: CLIENT_TIMEOUT_MS };
    execFile(program, [...args], options, (error, stdout) => {
      if (error === null) resolve(stdout);
      else
        reject(unresolvable(kind, `\`${[program, ...args].join(' ')}\` failed (${error.code ?? error.signal ?? 'unknown'})`, ADVICE[kind]));
    });
  });
}

/** A search path without the folders that package runners put in front of it, which hold what a tree brought, and without relative ones. */
function withoutTrees(path: string): string {
  const ofTree = join(sep, 'node_modules', '.bin');
  return path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !resolve(folder).endsWith(ofTree))
    .join(delimiter);
}

/** The entry for a URL of a client's configuration; nothing of a credential in it is told or kept. */
function entryOf(kind: RegistryKind, text: string): string {
  const url = URL.canParse(text.replace(/^sparse\+/, '')) ? new URL(text.replace(/^sparse\+/, '')) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw unresolvable(kind, 'a configured value is no http or https URL', ADVICE[kind]);
  const host = url.hostname;
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0)
    throw unresolvable(kind, `the address ${host} is configured, and rules go by name`, ADVICE[kind]);
  if (url.protocol === 'https:') return url.port === '' ? host : `${host}:${url.port}`;
  return `${host}:${url.port === '' ? '80' : url.port}/tcp`;
}

function unresolvable(kind: RegistryKind, why: string, action: string): CodedError {
  return new CodedError('registry_unresolvable', `registry:${kind} names no host: ${why}`, { id: `registry:${kind}`, action });
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? text;
}
