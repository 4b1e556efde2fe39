import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';
import { type OperatorPolicy, type PolicyDocument, parseOperatorPolicy } from '@firecrew/egress-policy';
import { MAX_POLICY_BYTES, parsePolicyText, policyInvalid } from './parse-policy.ts';

/** A policy that may be used, and where it is from. */
export interface LoadedPolicy {
  readonly policy: OperatorPolicy;
  /** The file, or `settings` where there is none. */
  readonly source: string;
  /** SHA-256 of what was read, in lower-case hexadecimal: another content is another policy. */
  readonly digest: string;
}

export interface LoadOptions {
  /** Names of the backends there are; a part for another one is a fault. */
  readonly backends: readonly string[];
}

/** Reads and checks a policy file. Throws `policy_unreadable` and `policy_invalid`. */
export async function loadPolicyFile(file: string, options: LoadOptions): Promise<LoadedPolicy> {
  const text = await readPolicyText(file);
  const document = parsePolicyText(text, file);
  const unknown = Object.keys(document.backends ?? {}).filter((name) => !options.backends.includes(name));
  if (unknown.length > 0) {
    const message = `no such backend; there are: ${options.backends.join(', ')}`;
    throw policyInvalid(
      file,
      unknown.map((name) => ({ path: `backends.${name}`, message })),
    );
  }
  return { policy: policyOf(document, file), source: file, digest: digestOf(text) };
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

function policyOf(document: PolicyDocument, source: string): OperatorPolicy {
  const parsed = parseOperatorPolicy(document);
  if (!parsed.ok) throw policyInvalid(source, parsed.problems);
  return parsed.policy;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
