import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';
import { type OperatorPolicy, type PolicyDocument, parseOperatorPolicy, type RegistryHosts, registriesOf } from '@firecrew/egress-policy';
import { findRegistry, REGISTRY_KINDS } from './find-registry.ts';
import { MAX_POLICY_BYTES, parsePolicyText, policyInvalid } from './parse-policy.ts';

/** A policy that may be used, and where it is from. */
export interface LoadedPolicy {
  readonly policy: OperatorPolicy;
  /** The file, or `settings` where there is none. */
  readonly source: string;
  /** SHA-256 of what was read and of what its registries were found to be, in lower-case hexadecimal: another content is another policy. */
  readonly digest: string;
}

export interface LoadOptions {
  /** Names of the backends there are; a part for another one is a fault. */
  readonly backends: readonly string[];
  /** The environment of the account whose clients name the registries. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Reads and checks a policy file. Throws `policy_unreadable`, `policy_invalid` and `registry_unresolvable`. */
export async function loadPolicyFile(file: string, options: LoadOptions): Promise<LoadedPolicy> {
  return await loadPolicyText(await readPolicyText(file), file, options);
}

/** Checks the text of a policy file. Throws `policy_invalid` and `registry_unresolvable`. */
export async function loadPolicyText(text: string, file: string, options: LoadOptions): Promise<LoadedPolicy> {
  const document = parsePolicyText(text, file);
  const unknown = Object.keys(document.backends ?? {}).filter((name) => !options.backends.includes(name));
  if (unknown.length > 0) {
    const message = `no such backend; there are: ${options.backends.join(', ')}`;
    throw policyInvalid(
      file,
      unknown.map((name) => ({ path: `backends.${name}`, message })),
    );
  }
  const registries = await findRegistries(document, options.env);
  const found = Object.keys(registries).length === 0 ? '' : JSON.stringify(registries);
  return { policy: policyOf(document, file, registries), source: file, digest: digestOf(`${text}${found}`) };
}

/** The policy of settings that name no file: missions reach what they ask for, below the ceiling. Throws `policy_invalid`. */
export function policyOfCeiling(ceiling: readonly string[] | null): LoadedPolicy {
  const source = 'settings';
  const document: PolicyDocument = { preset: 'open', ...(ceiling === null ? {} : { ceiling: { setup: ceiling, run: ceiling } }) };
  return { policy: policyOf(document, source), source, digest: digestOf(JSON.stringify(document)) };
}

/** The text of a policy file. Throws `policy_unreadable`, and `policy_invalid` for one that is too long. */
export async function readPolicyText(file: string): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file);
    const piece = Buffer.alloc(MAX_POLICY_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(piece, length, piece.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(piece.subarray(0, length));
  } catch (cause) {
    throw new CodedError('policy_unreadable', `the policy ${file} cannot be read: ${messageOf(cause)}`, {
      id: file,
      action: 'See that the file is there, is UTF-8, and may be read by the account of the server.',
      cause,
    });
  } finally {
    await handle?.close();
  }
}

/** The hosts of the registries that a document names; a word of no known client is left to the check of the document. */
async function findRegistries(document: PolicyDocument, env: LoadOptions['env']): Promise<RegistryHosts> {
  const wanted = registriesOf(document);
  const kinds = REGISTRY_KINDS.filter((kind) => wanted.includes(kind));
  return Object.fromEntries(await Promise.all(kinds.map(async (kind) => [kind, await findRegistry(kind, env)] as const)));
}

function policyOf(document: PolicyDocument, source: string, registries: RegistryHosts = {}): OperatorPolicy {
  const parsed = parseOperatorPolicy(document, registries);
  if (!parsed.ok) throw policyInvalid(source, parsed.problems);
  return parsed.policy;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
