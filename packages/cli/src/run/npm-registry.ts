import { execFile } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CodedError, messageOf } from '@firecrew/base';
import type { AddressRule } from './run-options.ts';

/** The word of `--setup-allow` for the registry in the caller's own npm configuration. */
export const NPM_REGISTRY_WORD = 'registry:npm';
/** npm's own registry, where nothing else is configured. */
export const DEFAULT_REGISTRY = 'https://registry.npmjs.org/';
const NPM_TIMEOUT_MS = 15_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** A registry as egress rules and a set-up need it. */
export interface NpmRegistry {
  readonly url: string;
  /** Entry of an allow-list. */
  readonly entry: string;
  readonly rule: AddressRule;
}

/** What the caller's npm is configured with. */
export interface NpmSettings {
  readonly registry: string;
  /** The file of the authorities that it trusts, in the place of its own; undefined where it trusts its own. */
  readonly caFile: string | undefined;
}

const KEYS = ['registry', 'cafile'] as const;
type Settings = Readonly<Partial<Record<(typeof KEYS)[number], string>>>;

/**
 * The settings of the caller's npm. Variables count unless npm itself started this process: it passes on what the tree's own
 * configuration says. Then npm is asked in a folder of ours, and without an npm `~/.npmrc` is read.
 */
export async function readNpmSettings(env: Environment, neutralFolder: string): Promise<NpmSettings> {
  const found = { ...((await askNpm(env, neutralFolder)) ?? readUserFile(env)), ...namedBy(env) };
  return { registry: found.registry ?? DEFAULT_REGISTRY, caFile: found.cafile };
}

/** What a caller should know whose npm trusts authorities that no service and no set-up is told of; undefined where there are none. */
export function strangeAuthorities({ caFile }: NpmSettings, env: Environment): { detail: string; fix: string } | undefined {
  const { NODE_EXTRA_CA_CERTS: extra = '' } = env;
  if (caFile === undefined || extra !== '') return undefined;
  const detail = `npm's cafile ${caFile} stays here: services and set-ups trust what NODE_EXTRA_CA_CERTS names beside the system's`;
  return { detail, fix: `export NODE_EXTRA_CA_CERTS='${caFile}'; firecrew down` };
}

function namedBy(env: Environment): Settings {
  if (env.npm_command !== undefined || env.npm_lifecycle_event !== undefined) return {};
  return settingsOf((key) => env[`npm_config_${key}`] ?? env[`NPM_CONFIG_${key.toUpperCase()}`]);
}

function settingsOf(read: (key: (typeof KEYS)[number]) => string | undefined): Settings {
  const entries = KEYS.map((key) => [key, read(key)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && !['', 'null', 'undefined'].includes(value)));
}

/** The registry's host with the addresses it has now: they count as named by the operator. Throws `registry_unusable`, `registry_unresolvable`. */
export async function resolveRegistry(
  url: string,
  resolve: (host: string) => Promise<readonly string[]> = addressesOf,
): Promise<NpmRegistry> {
  const { host, entry, plain } = registryEntry(url);
  let addresses: readonly string[];
  try {
    addresses = await resolve(host);
  } catch (cause) {
    throw new CodedError('registry_unresolvable', `the npm registry ${host} has no address: ${messageOf(cause)}`, {
      id: host,
      action: 'Check the registry with `npm ping`, or name a host with --setup-allow.',
      cause,
    });
  }
  return { url: plain, entry, rule: { host, addresses: [...new Set(addresses)] } };
}

/** Host and allow-list entry of a registry URL. Throws `registry_unusable`. */
export function registryEntry(text: string): { host: string; entry: string; plain: string } {
  const refuse = (why: string, action: string): CodedError =>
    new CodedError('registry_unusable', `the npm registry cannot be allowed: ${why}`, { action });
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw refuse('its configured value is no http or https URL', 'See `npm config get registry`.');
  if (url.username !== '' || url.password !== '')
    throw refuse(
      'its URL holds a credential, which a set-up does not get',
      'Move the credential out of the URL, into the _authToken of your .npmrc.',
    );
  const host = url.hostname;
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0)
    throw refuse(`it is the address ${host}, and egress rules go by name`, 'Configure it by a host name, such as localhost.');
  const plain = `${url.protocol}//${url.host}${url.pathname}`;
  if (url.protocol === 'https:') return { host, entry: url.port === '' ? host : `${host}:${url.port}`, plain };
  return { host, entry: `${host}:${url.port === '' ? '80' : url.port}/tcp`, plain };
}

/** A set-up that uses a registry other than npm's own: the caller's configuration does not travel, so its address does. */
export function withRegistry(setup: string, url: string): string {
  return url === DEFAULT_REGISTRY ? setup : `export npm_config_registry='${url.replaceAll("'", "'\\''")}'; ${setup}`;
}

async function addressesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

async function askNpm(env: Environment, cwd: string): Promise<Settings | undefined> {
  const clean: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !/^npm_/i.test(name)) clean[name] = value;
  }
  clean.PATH = env.FIRECREW_CALLER_PATH ?? env.PATH ?? '';
  return await new Promise((resolve) => {
    execFile('npm', ['config', 'get', ...KEYS], { cwd, env: clean, timeout: NPM_TIMEOUT_MS }, (error, stdout) => {
      resolve(error === null ? settingsOf((key) => new RegExp(`^${key}=(.*)$`, 'm').exec(stdout)?.[1]?.trim()) : undefined);
    });
  });
}

function readUserFile(env: Environment): Settings {
  try {
    const text = readFileSync(join(env.HOME ?? homedir(), '.npmrc'), 'utf8');
    return settingsOf((key) => new RegExp(`^\\s*${key}\\s*=\\s*(\\S+)\\s*$`, 'm').exec(text)?.[1]);
  } catch {
    return {};
  }
}
