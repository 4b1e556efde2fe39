import { CodedError } from '@firecrew/base';
import type { PolicyDocument, PolicyProblem } from '@firecrew/egress-policy';
import { type Document, isScalar, parseDocument, visit } from 'yaml';
import { policyFileSchema } from './policy-schema.ts';

/** Bytes of one policy file. */
export const MAX_POLICY_BYTES = 256 * 1024;
/** Aliases that may be followed: enough for people, too few to grow a small file without bound. */
const MAX_ALIASES = 100;
/** Faults that one message tells. */
const MAX_TOLD = 20;

/** Reads the text of a policy file. `source` names it in errors. Throws `policy_invalid`, which tells every fault with its place. */
export function parsePolicyText(text: string, source: string): PolicyDocument {
  const parsed = policyFileSchema.safeParse(readYaml(text, source));
  if (parsed.success) return parsed.data;
  throw policyInvalid(
    source,
    parsed.error.issues.map(({ path, message }) => ({ path: pathOf(path), message })),
  );
}

/** The error of a policy that must not be used. */
export function policyInvalid(source: string, problems: readonly PolicyProblem[]): CodedError {
  const told = problems.slice(0, MAX_TOLD).map(({ path, message }) => `${path === '' ? '(top)' : path}: ${message}`);
  if (problems.length > told.length) told.push(`and ${problems.length - told.length} more`);
  return new CodedError('policy_invalid', `the policy ${source} is not valid: ${told.join('; ')}`, {
    id: source,
    action: 'Correct what is named; docs/operating.md describes the file. `firecrew policy check HOST --policy FILE` tries it.',
  });
}

function readYaml(text: string, source: string): unknown {
  if (Buffer.byteLength(text) > MAX_POLICY_BYTES)
    throw policyInvalid(source, [{ path: '', message: `it has more than ${MAX_POLICY_BYTES} bytes` }]);
  // A tag or a directive that is not understood is only a warning to the reader, and here no ground to guess.
  const document = parseDocument(text, { version: '1.2', strict: true, uniqueKeys: true, stringKeys: true, merge: false });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw policyInvalid(
      source,
      faults.map(({ message, linePos }) => ({ path: linePos === undefined ? '' : `line ${linePos[0].line}`, message: firstLine(message) })),
    );
  }
  if (hasKeyOfObjects(document)) throw policyInvalid(source, [{ path: '', message: 'no key may be "__proto__"' }]);
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    throw policyInvalid(source, [{ path: '', message: 'its aliases cannot be followed' }]);
  }
}

/** Whether a mapping has the one key that an object of JavaScript would lose without a word. */
function hasKeyOfObjects(document: Document): boolean {
  let has = false;
  visit(document, {
    Pair: (_at, { key }) => {
      has ||= (isScalar(key) ? key.value : key) === '__proto__';
    },
  });
  return has;
}

function firstLine(message: string): string {
  return message.split('\n')[0] ?? message;
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`)).join('');
}
