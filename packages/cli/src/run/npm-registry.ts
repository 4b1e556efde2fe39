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

/**
 * The registry of the caller's npm. Variables count unless npm itself started this process: it passes on what the tree's own
 * configuration says. Then npm is asked in a folder of ours, then `~/.npmrc` is read.
 */
export async function readRegistryUrl(env: Environment, neutralFolder: string): Promise<string> {
  const insideNpm = env.npm_command !== undefined || env.npm_lifecycle_event !== undefined;
  const named = env.npm_config_registry ?? env.NPM_CONFIG_REGISTRY;
  if (named !== undefined && named !== '' && !insideNpm) return named;
  return (await askNpm(env, neutralFolder)) ?? readUserFile(env) ?? DEFAULT_REGISTRY;
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

async function askNpm(env: Environment, cwd: string): Promise<string | undefined> {
  const clean: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !/^npm_/i.test(name)) clean[name] = value;
  }
  clean.PATH = env.FIRECREW_CALLER_PATH ?? env.PATH ?? '';
  return await new Promise((resolve) => {
    execFile('npm', ['config', 'get', 'registry'], { cwd, env: clean, timeout: NPM_TIMEOUT_MS }, (error, stdout) => {
      const text = stdout.trim();
      resolve(error !== null || text === '' || text === 'undefined' ? undefined : text);
    });
  });
}

function readUserFile(env: Environment): string | undefined {
  try {
    const text = readFileSync(join(env.HOME ?? homedir(), '.npmrc'), 'utf8');
    return /^\s*registry\s*=\s*(\S+)\s*$/m.exec(text)?.[1];
  } catch {
    return undefined;
  }
}
